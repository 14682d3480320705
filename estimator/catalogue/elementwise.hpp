// Functions that operators share which work element by element.
//
// PyTorch's TensorIterator gives a new result the memory order of its operand, without gaps, so
// that the result of a permuted tensor is permuted as well (ATen/TensorIterator.cpp,
// reorder_dimensions); our executor's tensors are contiguous.
#pragma once

#include "estimator/step/operator_lowering.hpp"

namespace stowage {

/// Makes a new storage for output i, in the memory order of `like` if that has the output's shape.
TensorView new_output_like(OperatorLowering& lowering, const TensorView& like, int i = 0);
/// Makes a new storage for the gradient of input i, in the memory order of `like` (the output's
/// gradient).
[[nodiscard]] TensorView new_input_gradient_like(OperatorLowering& lowering, const TensorView& like,
                                                 int i = 0);

/// Passes a gradient of input i on to its producer.
using GiveGradient = void (*)(OperatorLowering& lowering, int i, const TensorView& gradient);
/// Sums `gradient` over the axes along which input i was broadcast, and passes it on.
void give_broadcast_gradient(OperatorLowering& lowering, int i, const TensorView& gradient);
/// As above, in the order of PyTorch's engine, which takes a node's gradients one after the other
/// and converts each to the input's format at once.
void give_converted_gradient(OperatorLowering& lowering, int i, const TensorView& gradient);

/// Whether a kernel set writes the result into the input's storage.
using InPlaceRule = bool (*)(const OperatorLowering& lowering);
/// PyTorch's rule: the attribute `in_place` is set, and the result has the input's shape and
/// format.
[[nodiscard]] bool asked_in_place(const OperatorLowering& lowering);
/// Our executor's rule: as above, and no kernel reads the input again.
[[nodiscard]] bool safely_in_place(const OperatorLowering& lowering);

[[nodiscard]] AttributeSpec in_place_attribute(std::string_view doc = "overwrite the input");

}  // namespace stowage
