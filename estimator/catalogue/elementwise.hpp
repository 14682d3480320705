// What operators that work element by element share.
//
// PyTorch's TensorIterator gives a new result the memory order of its operand, without gaps, so
// that the result of a permuted tensor is permuted as well (ATen/TensorIterator.cpp,
// reorder_dimensions); our executor's tensors are contiguous.
#pragma once

#include "estimator/step/operator_lowering.hpp"

namespace stowage {

/// A new storage for output i, in the memory order of `like` where that has its shape.
TensorView new_output_like(OperatorLowering& lowering, const TensorView& like, int i = 0);
/// A new storage for the gradient of input i, in the memory order of `like` (the output's
/// gradient).
[[nodiscard]] TensorView new_input_gradient_like(OperatorLowering& lowering, const TensorView& like,
                                                 int i = 0);

/// Hands a gradient of input i on.
using GiveGradient = void (*)(OperatorLowering& lowering, int i, const TensorView& gradient);
/// `gradient` summed over the axes along which input i was repeated (broadcast), then given away.
void give_broadcast_gradient(OperatorLowering& lowering, int i, const TensorView& gradient);
/// As above, as PyTorch's engine does it: it takes a node's gradients one after the other, and
/// converts each at once.
void give_converted_gradient(OperatorLowering& lowering, int i, const TensorView& gradient);

/// Whether a kernel set lets the result take the input's storage.
using InPlaceRule = bool (*)(const OperatorLowering& lowering);
/// `in_place` was asked for, and the result has the input's shape and format. In PyTorch the
/// script's word counts.
[[nodiscard]] bool asked_in_place(const OperatorLowering& lowering);
/// And nobody reads the input again: our executor overwrites nothing else.
[[nodiscard]] bool safely_in_place(const OperatorLowering& lowering);

[[nodiscard]] AttributeSpec in_place_attribute(std::string_view doc = "overwrite the input");

}  // namespace stowage
