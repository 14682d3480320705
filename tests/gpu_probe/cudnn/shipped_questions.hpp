// What cuDNN is asked about the models that are shipped: each distinct question of their steps
// once.
//
// Of our own kernels the convolutions, which is what a plan executes: training and inference, in
// fp32 with TF32 and without, fp16 and bf16. Autocast and master weights ask nothing else, since a
// convolution is then one of fp16 or bf16 with the same shapes. Of both kernel sets the calls of
// attention that cuDNN is asked about, which depend on the card's compute capability.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "estimator/workspace/workspace_source.hpp"

namespace stowage::test {

struct ShippedConvolutions {
  std::set<ConvolutionQuery> questions;
  std::int64_t calls = 0;  ///< nodes that ask
  /// The nodes whose call, as a GPU is given it, asks something else than the plan did.
  std::vector<std::string> unequal;
};

/// Adds those of a model (a name of configs/models). Throws std::runtime_error where it cannot be
/// lowered.
void add_convolutions(const std::string& model, std::int64_t batch, ShippedConvolutions& all);

/// Adds those of a model in fp16 and bf16, on such a card; none where cuDNN has no attention.
void add_attention(const std::string& model, std::int64_t batch, double compute_capability,
                   std::set<AttentionQuery>& all);

}  // namespace stowage::test
