// In which order of axes PyTorch's kernels read their arguments: one that lies otherwise is copied
// within the call (`input.contiguous()` in its operator), and the copy is gone when it returns.
//
// Sources: ATen/native of PyTorch 2.15, held against FakeTensor for the copies that show there
// (tests/reference/operators/channels_last.json). Convolutions: convolves_channels_last.
#pragma once

#include <cstddef>

#include "estimator/step/operator_lowering.hpp"

namespace stowage {

enum class ArgumentOrder { as_it_lies, contiguous, channels_last };

/// `argument`: its number among the node's reads. `leading`: what the kernel chooses its layout by:
/// its input, in backward the one that was saved.
[[nodiscard]] ArgumentOrder order_read(Kernel kernel, std::size_t argument,
                                       const TensorView& leading);

/// Whether the kernel reads a copy of the argument `view`.
[[nodiscard]] bool copies_within(Kernel kernel, std::size_t argument, const TensorView& view,
                                 const TensorView& leading);

/// Pooling of images keeps the layout of its input; of volumes only max_pool3d does.
[[nodiscard]] bool pools_channels_last(Kernel kernel, TensorView input);

}  // namespace stowage
