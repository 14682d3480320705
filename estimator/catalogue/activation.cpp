// relu. In place, output and input share a storage; the result is what backward needs either way.
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

tl::expected<Inference, InferenceError> infer(const Attributes&,
                                              std::span<const TensorType> inputs) {
  return infer_elementwise(inputs, 1);
}

void forward(OperatorLowering& lowering) {
  const TensorView x = lowering.input();
  const bool in_place = lowering.attributes().boolean("in_place") &&
                        (lowering.pytorch() || lowering.may_overwrite_input());
  if (in_place) lowering.set_output(0, x);
  const TensorView y = in_place ? x : lowering.new_output();
  lowering.emit(Kernel::relu_forward, "forward", {x}, {y}, {.flops = element_count(x.shape)});
  lowering.save("result", y);
}

void backward(OperatorLowering& lowering) {
  const TensorView dx = lowering.new_input_gradient();
  lowering.emit(Kernel::relu_backward, "backward",
                {lowering.saved("result"), lowering.output_gradient()}, {dx},
                {.flops = element_count(dx.shape)});
  lowering.give_input_gradient(0, dx);
}

}  // namespace

OperatorRow rows::relu() {
  return {.name = "relu",
          .doc = "max(x, 0)",
          .attributes = {{.name = "in_place",
                          .type = AttributeType::boolean,
                          .doc = "overwrite the input",
                          .default_value = false}},
          .infer = infer,
          .lowering = {LoweringRules{forward, backward}, LoweringRules{forward, backward}}};
}

}  // namespace stowage
