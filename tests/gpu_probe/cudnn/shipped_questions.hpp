// The questions that cuDNN is asked about the shipped models: each distinct question once.
//
// For our own kernel set these are the convolutions, which are what a plan executes: in training
// and inference, in fp32 with TF32 and without, in fp16 and bf16. Autocast and master weights add
// no question, since their convolutions are fp16 or bf16 ones of the same shapes. For both kernel
// sets they are the calls of attention that cuDNN is asked about, which depend on the card's
// compute capability.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "estimator/workspace/workspace_source.hpp"

namespace stowage::test {

struct ShippedConvolutions {
  std::set<ConvolutionQuery> questions;
  std::int64_t calls = 0;  ///< number of nodes that ask
  /// The nodes whose call on a GPU asks another question than the plan did.
  std::vector<std::string> unequal;
};

/// Adds the convolutions of a model (a name of configs/models). Throws std::runtime_error where it
/// cannot be lowered.
void add_convolutions(const std::string& model, std::int64_t batch, ShippedConvolutions& all);

/// Adds the attention of a model in fp16 and bf16 on a card of that compute capability; none where
/// cuDNN has no attention.
void add_attention(const std::string& model, std::int64_t batch, double compute_capability,
                   std::set<AttentionQuery>& all);

}  // namespace stowage::test
