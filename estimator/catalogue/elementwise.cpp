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

void give_broadcast_gradient(OperatorLowering& lowering, int i, const TensorView& gradient) {
  // The engine takes a node's gradients one after the other, and converts each at once.
  const auto give = [&](const TensorView& dx) {
    lowering.give_input_gradient(i, dx);
    if (lowering.pytorch() && dx.type != lowering.input(i).type) lowering.deliver_gradients();
  };
  if (gradient.shape == lowering.input(i).shape) return give(gradient);
  // In the gradient's format: the engine converts after it has summed.
  const TensorView dx = lowering.new_tensor(fmt::format("grad_input{}", i), lowering.input(i).shape,
                                            gradient.type, StorageClass::activation_gradient);
  lowering.emit(Kernel::sum_to_shape, fmt::format("backward.sum{}", i), {gradient}, {dx},
                {.flops = element_count(gradient.shape)});
  give(dx);
}

bool works_in_place(const OperatorLowering& lowering, int i) {
  return lowering.attributes().boolean("in_place") &&
         lowering.input(i).shape == lowering.output_type().shape &&
         lowering.input(i).type == lowering.output_type().type &&
         (lowering.pytorch() || lowering.may_overwrite_input(i));
}

AttributeSpec in_place_attribute(std::string_view doc) {
  return {.name = "in_place", .type = AttributeType::boolean, .doc = doc, .default_value = false};
}

}  // namespace stowage
