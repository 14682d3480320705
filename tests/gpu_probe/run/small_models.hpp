// Small networks, as descriptions, and their steps.
#pragma once

#include <string>

#include "estimator/step/step_graph.hpp"

namespace stowage::test {

extern const char* const mlp;           ///< three linear layers, mean squared error
extern const char* const small_cnn;     ///< convolutions, pooling, cross entropy
extern const char* const small_resnet;  ///< batch normalisation, in-place ReLU, shortcuts
extern const char* const small_gpt2;    ///< embeddings, attention, dropout, tied weights
extern const char* const small_unet;    ///< transposed convolutions, concatenation
extern const char* const small_lstm;    ///< embeddings, two layers of an lstm

/// The step of a description that is known to be right, lowered for the `stowage` kernel set.
[[nodiscard]] StepGraph step_of(const char* text, const LoweringSettings& settings = {},
                                Precision precision = Precision::fp32);

// Settings as for our own executor's steps: results in place where that is allowed.
[[nodiscard]] LoweringSettings sgd_momentum(int micro_batches = 1);
[[nodiscard]] LoweringSettings adamw(int micro_batches = 1);

}  // namespace stowage::test
