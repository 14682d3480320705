// What cuDNN's recurrent layers take beside PyTorch's tensors.
//
// cuDNN says the sizes of its reserve and workspace only on a GPU (cudnnGetRNNTempSpaceSizes wants
// a handle): these are fitted to one published measurement each of lstm and gru, of cuDNN 6 or 7 in
// float32 (pytorch issue 2895: 4 layers of 320, 123 inputs, 25,000 positions in all: reserves of
// 736,000,000 and 864,000,000 bytes, exactly fitted; workspaces of 17,730,560 and 13,169,920 bytes,
// 1.46 and 1.45 times the weights). Today's cuDNN may differ, and rnn's is an analogy. Not counted:
// cuDNN's dropout state, one for all layers of a process, a few MiB.
#pragma once

#include <cstdint>
#include <string_view>

#include "estimator/step/operator_lowering.hpp"

namespace stowage {

struct CudnnRecurrence {
  std::string_view cell;  ///< lstm, gru, tanh or relu
  std::int64_t layers = 1, directions = 1, hidden = 1;
  Affine positions;  ///< of all sequences together
};

/// Bytes that forward keeps for backward.
[[nodiscard]] Affine cudnn_reserve(const CudnnRecurrence& n, DataType type);
/// Bytes within the call, forward and backward; `weights`: bytes of all weights.
[[nodiscard]] Affine cudnn_recurrent_workspace(Affine weights);

/// cuDNN works on [sequence, batch, features]: bytes of the copy of what does not lie so.
[[nodiscard]] Affine sequence_copy(const TensorView& view, bool batch_first);

}  // namespace stowage
