// parameter: a learned tensor that is no layer's weight (ViT's class token and position table). It
// takes no input; `expand` and `add` do what a module does with it.
#include <fmt/format.h>

#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

tl::expected<Inference, InferenceError> infer_parameter(const Attributes& attributes,
                                                        std::span<const TensorType>) {
  const Shape& shape = attributes.dimensions("shape");
  for (const Affine& dimension : shape) {
    if (!dimension.is_constant()) {
      return refuse(
          fmt::format("a parameter's shape {} may not depend on the batch", to_string(shape)),
          "shape");
    }
    if (dimension.constant < 1) {
      return refuse(fmt::format("{} is not a dimension", dimension.to_string()), "shape");
    }
  }
  Inference result;
  result.outputs = {{shape, DataType::float32}};  // the model's format: makes_floats
  result.parameters = {{.name = "weight", .shape = shape}};
  return result;
}

void forward_parameter(OperatorLowering& lowering) {
  lowering.set_output(0, lowering.parameter(0));
}

// AccumulateGrad takes a gradient of the parameter's layout as it is, and copies another.
void backward_parameter(OperatorLowering& lowering) {
  if (!lowering.parameter_needs_gradient(0)) return;
  const TensorView& dy = lowering.output_gradient();
  if (same_memory_format(dy, lowering.parameter(0))) return lowering.give_parameter_gradient(0, dy);
  TensorView copy = lowering.new_parameter_gradient(0);
  copy.strides = lowering.parameter(0).strides;
  lowering.emit(Kernel::copy, "backward", {dy}, {copy});
  lowering.give_parameter_gradient(0, copy);
}

}  // namespace

OperatorRow rows::parameter() {
  return {.name = "parameter",
          .doc = "a learned tensor of its own, as class tokens and position tables are",
          .attributes = {{.name = "shape",
                          .type = AttributeType::dimensions,
                          .doc = "its dimensions, numbers only"}},
          .min_inputs = 0,
          .max_inputs = 0,
          .infer = infer_parameter,
          .lowering = {.stowage = {forward_parameter, backward_parameter}},
          .makes_floats = true};
}

}  // namespace stowage
