#include "estimator/catalogue/elementwise.hpp"

#include <fmt/format.h>

namespace stowage {

TensorView new_output_like(OperatorLowering& lowering, const TensorView& like, int i) {
  const TensorView made = ordered_like(lowering.new_output(i), like);
  lowering.set_output(i, made);
  return made;
}

TensorView new_input_gradient_like(OperatorLowering& lowering, const TensorView& like, int i) {
  return ordered_like(lowering.new_input_gradient(i), like);
}

namespace {

TensorView summed_gradient(OperatorLowering& lowering, int i, const TensorView& gradient) {
  if (gradient.shape == lowering.input(i).shape) return gradient;
  // In the gradient's format: the engine converts after it has summed.
  const TensorView dx = lowering.new_tensor(fmt::format("grad_input{}", i), lowering.input(i).shape,
                                            gradient.type, StorageClass::activation_gradient);
  lowering.emit(Kernel::sum_to_shape, fmt::format("backward.sum{}", i), {gradient}, {dx},
                {.flops = element_count(gradient.shape)});
  return dx;
}

}  // namespace

void give_broadcast_gradient(OperatorLowering& lowering, int i, const TensorView& gradient) {
  lowering.give_input_gradient(i, summed_gradient(lowering, i, gradient));
}

void give_converted_gradient(OperatorLowering& lowering, int i, const TensorView& gradient) {
  const TensorView dx = summed_gradient(lowering, i, gradient);
  lowering.give_input_gradient(i, dx);
  if (dx.type != lowering.input(i).type) lowering.deliver_gradients();
}

bool asked_in_place(const OperatorLowering& lowering) {
  return lowering.attributes().boolean("in_place") &&
         lowering.input().shape == lowering.output_type().shape &&
         lowering.input().type == lowering.output_type().type;
}

bool safely_in_place(const OperatorLowering& lowering) {
  return asked_in_place(lowering) && lowering.may_overwrite_input();
}

AttributeSpec in_place_attribute(std::string_view doc) {
  return {.name = "in_place", .type = AttributeType::boolean, .doc = doc, .default_value = false};
}

}  // namespace stowage
