// identity, cast to another format, and constant: a tensor of fixed values, which is a buffer of
// the model or is made anew in every step.
#include <fmt/format.h>

#include "estimator/catalogue/elementwise.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"

namespace stowage {

namespace {

tl::expected<Inference, InferenceError> infer_identity(const Attributes&,
                                                       std::span<const TensorType> inputs) {
  Inference result;
  result.outputs = {inputs[0]};
  return result;
}

// Each copy is made of the one before, and the input is there until the last has been made: some
// augmentations read it to the end.
void forward_identity(OperatorLowering& lowering) {
  const std::int64_t copies = lowering.attributes().integer("training_copies");
  if (!lowering.training() || copies == 0) return lowering.set_output(0, lowering.input());
  const TensorView x = lowering.input();
  TensorView made = x;
  for (std::int64_t i = 1; i <= copies; ++i) {
    const std::string name = i == copies ? "forward" : fmt::format("forward.copy{}", i);
    const TensorView next = i == copies ? new_output_like(lowering, x)
                                        : lowering.new_tensor(fmt::format("copy{}", i), x.shape,
                                                              x.type, StorageClass::activation);
    lowering.emit(Kernel::copy, name, {made}, {next}, {.holds = {x.storage}});
    made = next;
  }
}

void backward_identity(OperatorLowering& lowering) {
  lowering.give_input_gradient(0, lowering.output_gradient());
}

/// Float32 here stands for the model's or autocast's format, which is set later.
DataType written_type(const Attributes& attributes) {
  return parse_data_type(attributes.text("dtype")).value_or(DataType::float32);
}

tl::expected<Inference, InferenceError> infer_cast(const Attributes& attributes,
                                                   std::span<const TensorType> inputs) {
  Inference result;
  result.outputs = {{inputs[0].shape, written_type(attributes)}};
  result.flops = element_count(inputs[0].shape);
  return result;
}

// `x.float()` returns x itself if it is float32.
void forward_cast(OperatorLowering& lowering) {
  const TensorView x = lowering.input();
  if (x.type == lowering.output_type().type) return lowering.set_output(0, x);
  lowering.emit(Kernel::cast, "forward", {x}, {new_output_like(lowering, x)},
                {.flops = element_count(x.shape)});
}

void backward_cast(OperatorLowering& lowering) {
  const TensorView dy = lowering.output_gradient();
  const DataType type = lowering.input().type;
  if (!is_floating_point(type) || !is_floating_point(dy.type)) return;
  if (dy.type == type) return lowering.give_input_gradient(0, dy);
  const TensorView dx = new_input_gradient_like(lowering, dy);
  lowering.emit(Kernel::cast, "backward", {dy}, {dx}, {.flops = element_count(dx.shape)});
  lowering.give_input_gradient(0, dx);
}

tl::expected<Inference, InferenceError> infer_constant(const Attributes& attributes,
                                                       std::span<const TensorType>) {
  const Shape& shape = attributes.dimensions("shape");
  const bool buffer = attributes.boolean("buffer");
  for (const Affine& dimension : shape) {
    if (dimension.constant < 0 || dimension.slope < 0 || dimension == Affine(0)) {
      return refuse(fmt::format("{} is not a dimension", dimension.to_string()), "shape");
    }
    if (buffer && !dimension.is_constant()) {
      return refuse(
          fmt::format("a buffer's dimension {} may not depend on the batch", dimension.to_string()),
          "shape");
    }
  }
  const DataType type = written_type(attributes);
  Inference result;
  result.outputs = {{shape, type}};
  if (buffer) {
    result.parameters.push_back({.name = "value", .shape = shape, .type = type, .is_buffer = true});
  }
  return result;
}

void forward_constant(OperatorLowering& lowering) {
  if (lowering.attributes().boolean("buffer")) {
    return lowering.set_output(0, lowering.parameter(0));
  }
  Attributes value;
  value.set("value", lowering.attributes().real("value"));
  lowering.emit(Kernel::fill, "forward", {}, {lowering.new_output()}, {.attributes = value});
}

AttributeSpec type_attribute(std::string_view doc, std::optional<AttributeValue> value) {
  return {
      .name = "dtype",
      .type = AttributeType::choice,
      .doc = doc,
      .default_value = std::move(value),
      .choices = {"float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "bool"}};
}

AttributeSpec cast_type_attribute() {
  AttributeSpec spec =
      type_attribute("the result's format; model: that of the model's parameters", std::nullopt);
  spec.choices.push_back("model");
  return spec;
}

AttributeSpec constant_type_attribute() {
  AttributeSpec spec = type_attribute(
      "its format; float32 means the model's own, lower autocast's where there is one",
      std::string("float32"));
  spec.choices.push_back("lower");
  return spec;
}

}  // namespace

OperatorRow rows::identity() {
  return {.name = "identity",
          .doc = "its input",
          .attributes = {{.name = "training_copies",
                          .type = AttributeType::integer,
                          .doc = "in training the result is the last of so many copies, each made "
                                 "of the one before, as augmentation on the device makes them",
                          .default_value = std::int64_t{0},
                          .minimum = 0,
                          .maximum = 16}},
          .infer = infer_identity,
          .lowering = {.stowage = {forward_identity, backward_identity}}};
}

OperatorRow rows::cast() {
  return {.name = "cast",
          .doc = "the same values in another format",
          .attributes = {cast_type_attribute()},
          .infer = infer_cast,
          .lowering = {.stowage = {forward_cast, backward_cast}}};
}

OperatorRow rows::constant() {
  return {.name = "constant",
          .doc = "a tensor of one value, made in every step or kept as a buffer",
          .attributes = {{.name = "shape",
                          .type = AttributeType::dimensions,
                          .doc = "its dimensions; empty: one number",
                          .default_value = Shape{}},
                         constant_type_attribute(),
                         {.name = "value",
                          .type = AttributeType::real,
                          .doc = "of every element",
                          .default_value = 0.0},
                         {.name = "buffer",
                          .type = AttributeType::boolean,
                          .doc = "keep it with the model",
                          .default_value = false},
                         {.name = "causal",
                          .type = AttributeType::boolean,
                          .doc = "added to scores, it hides later tokens. What a cache keeps "
                                 "follows from it (docs/serving.md)",
                          .default_value = false},
                         {.name = "window",
                          .type = AttributeType::integer,
                          .doc = "with causal: the last so many keys that a query sees; 0: all",
                          .default_value = std::int64_t{0},
                          .minimum = 0}},
          .min_inputs = 0,
          .max_inputs = 0,
          .infer = infer_constant,
          .lowering = {.stowage = {forward_constant, nullptr}},
          .makes_floats = true};
}

}  // namespace stowage
