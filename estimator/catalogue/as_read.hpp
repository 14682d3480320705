// A kernel's argument as it reads it.
#pragma once

#include <cstddef>
#include <string_view>

#include "estimator/pytorch/argument_order.hpp"

namespace stowage {

/// `view`, or the copy that PyTorch's kernel makes of it within its call: argument number
/// `argument` of the call, where `leading` decides the layout (pytorch/argument_order.hpp).
[[nodiscard]] inline TensorView as_read(OperatorLowering& lowering, Kernel kernel,
                                        std::size_t argument, const TensorView& view,
                                        const TensorView& leading, std::string_view suffix) {
  const ArgumentOrder order = order_read(kernel, argument, leading);
  if (order == ArgumentOrder::as_it_lies) return view;
  return lowering.contiguous_within(view, suffix, order == ArgumentOrder::channels_last);
}

/// The same of an input that leads.
[[nodiscard]] inline TensorView input_as_read(OperatorLowering& lowering, Kernel kernel) {
  const TensorView& input = lowering.input(0);
  return as_read(lowering, kernel, 0, input, input, "input.contiguous");
}

}  // namespace stowage
