// The memory order in which PyTorch's kernels read their arguments. An argument in another order is
// copied within the call (`input.contiguous()` in the operator), and the copy is freed when the
// call returns.
//
// Source: ATen/native of PyTorch 2.15, checked against FakeTensor for the copies that are visible
// there (tests/reference/operators/channels_last.json). For convolutions see
// convolves_channels_last().
#pragma once

#include <cstddef>

#include "estimator/step/operator_lowering.hpp"

namespace stowage {

enum class ArgumentOrder { unchanged, contiguous, channels_last };

/// `argument`: its number among the node's reads. `leading`: the argument that decides the kernel's
/// layout: the input, or in backward the saved input.
[[nodiscard]] ArgumentOrder argument_order(Kernel kernel, std::size_t argument,
                                           const TensorView& leading);

/// Whether the kernel copies the argument `view`.
[[nodiscard]] bool copies_argument(Kernel kernel, std::size_t argument, const TensorView& view,
                                   const TensorView& leading);

/// Whether a pooling kernel keeps channels last: all do for images, and only max_pool3d for
/// volumes.
[[nodiscard]] bool pools_channels_last(Kernel kernel, TensorView input);

}  // namespace stowage
