// The reserve and the workspace of cuDNN's recurrent layers.
//
// cuDNN tells these sizes only on a GPU (cudnnGetRNNTempSpaceSizes needs a handle). The formulas
// here are fitted to one published measurement each of lstm and gru, of cuDNN 6 or 7 in float32
// (pytorch issue 2895: 4 layers of 320, 123 inputs, 25,000 positions in all: reserves of
// 736,000,000 and 864,000,000 bytes, exactly fitted; workspaces of 17,730,560 and 13,169,920 bytes,
// 1.46 and 1.45 times the weights). Current cuDNN may differ, and rnn is treated by analogy. Not
// counted: cuDNN's dropout state, a few MiB, one for all layers of a process.
#pragma once

#include <cstdint>
#include <string_view>

#include "estimator/step/operator_lowering.hpp"

namespace stowage {

struct CudnnRecurrence {
  std::string_view cell;  ///< lstm, gru, tanh or relu
  std::int64_t layers = 1, directions = 1, hidden = 1;
  Affine positions;  ///< positions of all sequences together
};

/// The reserve: bytes that forward keeps for backward.
[[nodiscard]] Affine cudnn_reserve(const CudnnRecurrence& n, DataType type);
/// The workspace in bytes, forward and backward. `weights`: bytes of all weights.
[[nodiscard]] Affine cudnn_recurrent_workspace(Affine weights);

/// cuDNN works on [sequence, batch, features]: bytes of the copy of a tensor in another order, else
/// 0.
[[nodiscard]] Affine sequence_copy(const TensorView& view, bool batch_first);

}  // namespace stowage
