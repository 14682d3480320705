// add and mul of two tensors, with broadcasting. add's gradient is the output's own, shared by both
// inputs; mul saves each operand that the other's gradient needs.
#include <fmt/format.h>

#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

tl::expected<Inference, InferenceError> infer(const Attributes&,
                                              std::span<const TensorType> inputs) {
  const auto shape = broadcast(inputs[0].shape, inputs[1].shape);
  if (!shape) {
    return refuse(fmt::format("the shapes {} and {} do not go together", to_string(inputs[0].shape),
                              to_string(inputs[1].shape)),
                  {}, 1);
  }
  if (inputs[0].type != inputs[1].type) {
    return refuse(fmt::format("its inputs are {} and {}", to_string(inputs[0].type),
                              to_string(inputs[1].type)),
                  {}, 1);
  }
  Inference result;
  result.outputs = {{*shape, inputs[0].type}};
  result.flops = element_count(*shape);
  return result;
}

void combine(OperatorLowering& lowering, Kernel kernel) {
  const TensorView y = lowering.new_output();
  lowering.emit(kernel, "forward", {lowering.input(0), lowering.input(1)}, {y},
                {.flops = element_count(y.shape)});
}

// The gradient of a broadcast operand is summed over the axes along which it was repeated.
void give_summed(OperatorLowering& lowering, int i, const TensorView& gradient) {
  if (gradient.shape == lowering.input(i).shape) {
    lowering.give_input_gradient(i, gradient);
    return;
  }
  const TensorView dx = lowering.new_input_gradient(i);
  lowering.emit(Kernel::sum_to_shape, fmt::format("backward.sum{}", i), {gradient}, {dx},
                {.flops = element_count(gradient.shape)});
  lowering.give_input_gradient(i, dx);
}

// `out += identity`: the sum takes the first operand's storage.
void forward_add(OperatorLowering& lowering) {
  const TensorView a = lowering.input(0);
  const bool in_place = lowering.attributes().boolean("in_place") &&
                        a.shape == lowering.output_type().shape &&
                        (lowering.pytorch() || lowering.may_overwrite_input(0));
  if (!in_place) return combine(lowering, Kernel::add);
  lowering.set_output(0, a);
  lowering.emit(Kernel::accumulate, "forward", {a, lowering.input(1)}, {a},
                {.flops = element_count(a.shape)});
}

void backward_add(OperatorLowering& lowering) {
  for (int i = 0; i < 2; ++i) {
    if (lowering.input_needs_gradient(i)) give_summed(lowering, i, lowering.output_gradient());
  }
}

void forward_mul(OperatorLowering& lowering) {
  combine(lowering, Kernel::multiply);
  if (lowering.input_needs_gradient(1)) lowering.save("self", lowering.input(0));
  if (lowering.input_needs_gradient(0)) lowering.save("other", lowering.input(1));
}

void backward_mul(OperatorLowering& lowering) {
  const TensorView dy = lowering.output_gradient();
  for (int i = 0; i < 2; ++i) {
    if (!lowering.input_needs_gradient(i)) continue;
    const TensorView other = lowering.saved(i == 0 ? "other" : "self");
    const TensorView product = lowering.new_tensor(fmt::format("grad_product{}", i), dy.shape,
                                                   dy.type, StorageClass::activation_gradient);
    lowering.emit(Kernel::multiply, fmt::format("backward.{}", i), {dy, other}, {product},
                  {.flops = element_count(dy.shape)});
    give_summed(lowering, i, product);
  }
}

}  // namespace

OperatorRow rows::add() {
  return {.name = "add",
          .doc = "sum of two tensors, broadcast",
          .attributes = {{.name = "in_place",
                          .type = AttributeType::boolean,
                          .doc = "overwrite the first input",
                          .default_value = false}},
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = infer,
          .lowering = {LoweringRules{forward_add, backward_add},
                       LoweringRules{forward_add, backward_add}}};
}

OperatorRow rows::mul() {
  return {.name = "mul",
          .doc = "product of two tensors, element by element, broadcast",
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = infer,
          .lowering = {LoweringRules{forward_mul, backward_mul},
                       LoweringRules{forward_mul, backward_mul}}};
}

}  // namespace stowage
