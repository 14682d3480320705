// The tensors that PyTorch's kernels read: an argument, or the copy of it in another memory order
// that the kernel makes within its call.
#pragma once

#include <cstddef>
#include <string_view>

#include "estimator/pytorch/argument_order.hpp"

namespace stowage {

/// `view`, or the copy that the kernel makes of it. `argument`: its number among the kernel's
/// arguments. `leading`: the argument that decides the kernel's layout
/// (pytorch/argument_order.hpp).
[[nodiscard]] inline TensorView argument_view(OperatorLowering& lowering, Kernel kernel,
                                              std::size_t argument, const TensorView& view,
                                              const TensorView& leading, std::string_view suffix) {
  const ArgumentOrder order = argument_order(kernel, argument, leading);
  if (order == ArgumentOrder::unchanged) return view;
  return lowering.contiguous_within(view, suffix, order == ArgumentOrder::channels_last);
}

/// As above, for the operator's input 0, which also decides the layout.
[[nodiscard]] inline TensorView input_view(OperatorLowering& lowering, Kernel kernel) {
  const TensorView& input = lowering.input(0);
  return argument_view(lowering, kernel, 0, input, input, "input.contiguous");
}

}  // namespace stowage
