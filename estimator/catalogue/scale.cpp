// scale: a tensor times a number and plus a number, or times a learned parameter (the layer scale
// of CaiT and ConvNeXt). In PyTorch a factor and an offset are two operators, of which neither
// saves a tensor; a subtraction from a number (factor -1) is one.
#include <fmt/format.h>

#include <optional>

#include "estimator/catalogue/elementwise.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"

namespace stowage {

namespace {

tl::expected<Inference, InferenceError> infer_scale(const Attributes& attributes,
                                                    std::span<const TensorType> inputs) {
  const bool learned = attributes.boolean("learned");
  const Shape& shape = attributes.dimensions("shape");
  auto result = infer_elementwise(inputs, learned ? 1 : 2);
  if (!result) return result;
  if (!learned) {
    if (shape.empty()) return result;
    return refuse("a shape is for what is learned", "shape", -1, "add 'learned: true'");
  }
  if (attributes.real("factor") != 1 || attributes.real("offset") != 0) {
    return refuse("a learned factor takes neither factor nor offset", "learned");
  }
  for (const Affine& dimension : shape) {
    if (!dimension.is_constant() || dimension.constant < 1) {
      return refuse(fmt::format("{} is not a parameter's dimension", dimension.to_string()),
                    "shape");
    }
  }
  if (broadcast(inputs[0].shape, shape) != inputs[0].shape) {
    return refuse(fmt::format("a factor {} does not go into {}", to_string(shape),
                              to_string(inputs[0].shape)),
                  "shape", 0);
  }
  result->parameters.push_back({.name = "weight", .shape = shape});
  return result;
}

Attributes factor_and_offset(double factor, double offset) {
  Attributes attributes;
  attributes.set("factor", factor);
  attributes.set("offset", offset);
  return attributes;
}

TensorView emit_scale(OperatorLowering& lowering, std::string_view name, const TensorView& x,
                      const TensorView& y, double factor, double offset) {
  lowering.emit(Kernel::scale, name, {x}, {y},
                {.attributes = factor_and_offset(factor, offset), .flops = element_count(x.shape)});
  return y;
}

bool changes_nothing(const OperatorLowering& lowering) {
  return lowering.attributes().real("factor") == 1 && lowering.attributes().real("offset") == 0;
}

/// One kernel: y = factor * x + offset.
void emit_result(OperatorLowering& lowering, const TensorView& x, double factor, bool in_place) {
  if (in_place) lowering.set_output(0, x);
  const TensorView y = in_place ? x : new_output_like(lowering, x);
  emit_scale(lowering, "forward", x, y, factor, lowering.attributes().real("offset"));
}

void forward_constant_stowage(OperatorLowering& lowering) {
  const TensorView x = lowering.input();
  if (changes_nothing(lowering)) return lowering.set_output(0, x);
  emit_result(lowering, x, lowering.attributes().real("factor"), safely_in_place(lowering));
}

/// Emits a product and then a sum, if the layer has both. PyTorch computes even x * 1, into a new
/// tensor.
void forward_constant_pytorch(OperatorLowering& lowering) {
  const double factor = lowering.attributes().real("factor");
  const TensorView x = lowering.input();
  const bool in_place = asked_in_place(lowering);
  const bool two = factor != 1 && factor != -1 && lowering.attributes().real("offset") != 0;
  if (!two) return emit_result(lowering, x, factor, in_place);
  const TensorView product =
      in_place ? x
               : ordered_like(
                     lowering.new_tensor("product", x.shape, x.type, StorageClass::activation), x);
  emit_result(lowering, emit_scale(lowering, "product", x, product, factor, 0), 1, in_place);
}

void emit_constant_backward(OperatorLowering& lowering, double factor) {
  const TensorView dy = lowering.output_gradient();
  const TensorView dx = new_input_gradient_like(lowering, dy);
  emit_scale(lowering, "backward", dy, dx, factor, 0);
  lowering.give_input_gradient(0, dx);
}

void backward_constant_stowage(OperatorLowering& lowering) {
  const double factor = lowering.attributes().real("factor");
  if (factor == 1) return lowering.give_input_gradient(0, lowering.output_gradient());
  emit_constant_backward(lowering, factor);
}

/// PyTorch multiplies even the gradient of x * 1; that of a sum alone is passed on unchanged.
void backward_constant_pytorch(OperatorLowering& lowering) {
  const double factor = lowering.attributes().real("factor");
  if (factor == 1 && lowering.attributes().real("offset") != 0) {
    return lowering.give_input_gradient(0, lowering.output_gradient());
  }
  emit_constant_backward(lowering, factor);
}

template <LowerRule constant>
void forward_scale(OperatorLowering& lowering) {
  if (!lowering.attributes().boolean("learned")) return constant(lowering);
  const TensorView x = lowering.input();
  const TensorView w = lowering.parameter(0);
  lowering.emit(Kernel::multiply, "forward", {x, w}, {new_output_like(lowering, x)},
                {.flops = element_count(x.shape)});
  if (lowering.parameter_needs_gradient(0)) lowering.save("self", x);
  if (lowering.input_needs_gradient()) lowering.save("weight", w);
}

template <LowerRule constant>
void backward_scale(OperatorLowering& lowering) {
  if (!lowering.attributes().boolean("learned")) return constant(lowering);
  const TensorView dy = lowering.output_gradient();
  const auto product = [&](std::string_view name, const TensorView& factor) {
    const TensorView result =
        ordered_like(lowering.new_tensor(fmt::format("grad_{}", name), dy.shape,
                                         promoted({dy.shape, dy.type}, {factor.shape, factor.type}),
                                         StorageClass::activation_gradient),
                     dy);
    lowering.emit(Kernel::multiply, fmt::format("backward.{}", name), {dy, factor}, {result},
                  {.flops = element_count(dy.shape)});
    return result;
  };
  std::optional<TensorView> dx, each;
  if (lowering.input_needs_gradient()) dx = product("input", lowering.saved("weight"));
  if (lowering.parameter_needs_gradient(0)) each = product("factors", lowering.saved("self"));
  if (dx) lowering.give_input_gradient(0, *dx);
  if (!each) return;
  TensorView dw = *each;
  if (each->shape != lowering.parameter(0).shape) {
    dw = lowering.new_tensor("grad_factor", lowering.parameter(0).shape, each->type,
                             StorageClass::activation_gradient);
    lowering.emit(Kernel::sum_to_shape, "backward.sum", {*each}, {dw},
                  {.flops = element_count(each->shape)});
  }
  lowering.give_parameter_gradient(0, dw);
}

}  // namespace

OperatorRow rows::scale() {
  return {.name = "scale",
          .doc = "factor * x + offset with numbers, or x times a learned parameter",
          .attributes = {{.name = "factor",
                          .type = AttributeType::real,
                          .doc = "the number that multiplies",
                          .default_value = 1.0},
                         {.name = "offset",
                          .type = AttributeType::real,
                          .doc = "the number that is added",
                          .default_value = 0.0},
                         {.name = "learned",
                          .type = AttributeType::boolean,
                          .doc = "multiply by a parameter instead",
                          .default_value = false},
                         {.name = "shape",
                          .type = AttributeType::dimensions,
                          .doc = "the parameter's: [768, 1, 1]; empty: one number",
                          .default_value = Shape{}},
                         in_place_attribute()},
          .infer = infer_scale,
          .lowering = {.stowage = {forward_scale<forward_constant_stowage>,
                                   backward_scale<backward_constant_stowage>},
                       .pytorch = {forward_scale<forward_constant_pytorch>,
                                   backward_scale<backward_constant_pytorch>}},
          .promotes_with_parameters = true};
}

}  // namespace stowage
