// custom: an operator whose sizes the description states, because the catalogue has no row for it.
// It counts in every report and in every plan; no device runs it, so that a plan with it is checked
// by the model checks only (kernel_list.hpp says why).
#include <fmt/format.h>

#include <array>

#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

constexpr std::array<std::string_view, 4> output_names{"shape", "shape_2", "shape_3", "shape_4"};
constexpr std::array<std::string_view, 6> parameter_names{
    "parameter", "parameter_2", "parameter_3", "parameter_4", "parameter_5", "parameter_6"};

/// The product of a list of factors; none: there is no list.
Affine product(const Attributes& attributes, std::string_view name) {
  const Shape& factors = attributes.dimensions(name);
  return factors.empty() ? Affine(0) : element_count(factors);
}

std::optional<InferenceError> check_numbers(const Attributes& attributes, std::string_view name,
                                            std::int64_t least, bool constant) {
  for (const Affine& number : attributes.dimensions(name)) {
    const bool small = number.slope < 0 || (number.slope == 0 && number.constant < least);
    if (small || (constant && !number.is_constant())) {
      return refuse(fmt::format("{} is not {}", number.to_string(),
                                constant ? "a constant dimension" : "a size"),
                    name)
          .value();
    }
  }
  return std::nullopt;
}

std::optional<InferenceError> check(const Attributes& attributes) {
  for (const std::string_view name : output_names) {
    if (auto error = check_numbers(attributes, name, 1, false)) return error;
  }
  for (const std::string_view name : parameter_names) {
    if (auto error = check_numbers(attributes, name, 1, true)) return error;
  }
  for (const std::string_view name :
       {"saved", "forward_temporary", "backward_temporary", "flops", "backward_flops"}) {
    if (auto error = check_numbers(attributes, name, 0, false)) return error;
  }
  return std::nullopt;
}

tl::expected<Inference, InferenceError> infer_custom(const Attributes& attributes,
                                                     std::span<const TensorType> inputs) {
  if (auto error = check(attributes)) return tl::unexpected(*error);
  const std::string& dtype = attributes.text("dtype");
  const DataType type = dtype == "as_input" ? inputs[0].type : *parse_data_type(dtype);
  Inference result;
  for (const std::string_view name : output_names) {
    const Shape& shape = attributes.dimensions(name);
    if (shape.empty() && result.outputs.empty()) {
      result.outputs.push_back({inputs[0].shape, type});
    } else if (!shape.empty()) {
      result.outputs.push_back({shape, type});
    }
  }
  if (attributes.boolean("in_place") && result.outputs[0] != inputs[0]) {
    return refuse(fmt::format("an output of {} {} does not take the place of an input of {} {}",
                              to_string(result.outputs[0].type), to_string(result.outputs[0].shape),
                              to_string(inputs[0].type), to_string(inputs[0].shape)),
                  "in_place");
  }
  for (const std::string_view name : parameter_names) {
    const Shape& shape = attributes.dimensions(name);
    if (!shape.empty()) result.parameters.push_back({.name = name, .shape = shape});
  }
  result.flops = product(attributes, "flops");
  return result;
}

std::vector<StorageId> temporary(OperatorLowering& lowering, std::string_view name) {
  const Affine bytes = product(lowering.attributes(), name);
  if (bytes == Affine(0)) return {};
  return {lowering.new_temporary(name, bytes)};
}

int output_count(const OperatorLowering& lowering) {
  return static_cast<int>(lowering.op().outputs.size());
}

void forward_stated(OperatorLowering& lowering, bool in_place) {
  std::vector<TensorView> reads, writes;
  for (int i = 0; i < lowering.input_count(); ++i) reads.push_back(lowering.input(i));
  for (int i = 0; i < lowering.parameter_count(); ++i) reads.push_back(lowering.parameter(i));
  if (in_place) lowering.set_output(0, lowering.input(0));
  for (int i = 0; i < output_count(lowering); ++i) {
    writes.push_back(i == 0 && in_place ? lowering.input(0) : lowering.new_output(i));
  }
  const Affine saved = product(lowering.attributes(), "saved");
  if (saved != Affine(0) && lowering.needs_gradient()) {
    writes.push_back(
        lowering.new_tensor("saved", {saved}, DataType::uint8, StorageClass::saved_auxiliary));
    lowering.save("saved", writes.back());
  }
  lowering.emit(Kernel::custom_forward, "forward", reads, writes,
                {.temporaries = temporary(lowering, "forward_temporary"),
                 .flops = product(lowering.attributes(), "flops")});
  if (lowering.attributes().boolean("saves_inputs")) {
    for (int i = 0; i < lowering.input_count(); ++i) {
      lowering.save(fmt::format("input{}", i), reads[static_cast<std::size_t>(i)]);
    }
  }
  if (lowering.attributes().boolean("saves_output")) lowering.save("output", lowering.output());
}

void forward_custom_stowage(OperatorLowering& lowering) {
  forward_stated(lowering,
                 lowering.attributes().boolean("in_place") && lowering.may_overwrite_input(0));
}

void forward_custom_pytorch(OperatorLowering& lowering) {
  forward_stated(lowering, lowering.attributes().boolean("in_place"));
}

void backward_custom(OperatorLowering& lowering) {
  std::vector<TensorView> reads, writes;
  const auto read_saved = [&](const std::string& role) {
    if (lowering.has_saved(role)) reads.push_back(lowering.saved(role));
  };
  read_saved("saved");
  for (int i = 0; i < lowering.input_count(); ++i) read_saved(fmt::format("input{}", i));
  read_saved("output");
  for (int i = 0; i < output_count(lowering); ++i) {
    if (lowering.has_output_gradient(i)) reads.push_back(lowering.output_gradient(i));
  }
  for (int i = 0; i < lowering.parameter_count(); ++i) reads.push_back(lowering.parameter(i));
  std::vector<std::pair<int, TensorView>> inputs, parameters;
  for (int i = 0; i < lowering.input_count(); ++i) {
    if (!lowering.input_needs_gradient(i)) continue;
    inputs.emplace_back(i, lowering.new_input_gradient(i));
    writes.push_back(inputs.back().second);
  }
  for (int i = 0; i < lowering.parameter_count(); ++i) {
    if (!lowering.parameter_needs_gradient(i)) continue;
    parameters.emplace_back(i, lowering.new_parameter_gradient(i));
    writes.push_back(parameters.back().second);
  }
  const Affine stated = product(lowering.attributes(), "backward_flops");
  lowering.emit(
      Kernel::custom_backward, "backward", reads, writes,
      {.temporaries = temporary(lowering, "backward_temporary"),
       .flops =
           stated != Affine(0) ? stated : product(lowering.attributes(), "flops") * Affine(2)});
  for (const auto& [i, gradient] : inputs) lowering.give_input_gradient(i, gradient);
  for (const auto& [i, gradient] : parameters) lowering.give_parameter_gradient(i, gradient);
}

AttributeSpec factors_attribute(std::string_view name, std::string_view doc) {
  return {.name = name, .type = AttributeType::dimensions, .doc = doc, .default_value = Shape{}};
}
AttributeSpec custom_flag(std::string_view name, std::string_view doc) {
  return {.name = name, .type = AttributeType::boolean, .doc = doc, .default_value = false};
}

}  // namespace

OperatorRow rows::custom() {
  std::vector<AttributeSpec> attributes{
      factors_attribute("shape", "dimensions of the output; none: the first input's")};
  for (std::size_t i = 1; i < output_names.size(); ++i) {
    attributes.push_back(factors_attribute(output_names[i], "dimensions of one more output"));
  }
  attributes.push_back({.name = "dtype",
                        .type = AttributeType::choice,
                        .doc = "format of the outputs",
                        .default_value = std::string("as_input"),
                        .choices = {"as_input", "float32", "float64", "float16", "bfloat16",
                                    "int64", "int32", "uint8", "bool"}});
  for (const std::string_view name : parameter_names) {
    attributes.push_back(factors_attribute(name, "dimensions of a learned tensor"));
  }
  for (const AttributeSpec& spec :
       {factors_attribute("saved", "bytes kept for backward, as factors: [batch, 4096]"),
        custom_flag("saves_inputs", "its inputs are kept for backward"),
        custom_flag("saves_output", "its first output is kept for backward"),
        factors_attribute("forward_temporary", "bytes in use during forward, as factors"),
        factors_attribute("backward_temporary", "bytes in use during backward, as factors"),
        factors_attribute("flops", "floating-point operations of forward, as factors"),
        factors_attribute("backward_flops", "those of backward, as factors; none: twice forward's"),
        custom_flag("in_place", "the first output overwrites the first input")}) {
    attributes.push_back(spec);
  }
  return {.name = "custom",
          .doc = "an operator of stated sizes; it is counted, and runs nowhere",
          .attributes = std::move(attributes),
          .max_inputs = -1,
          .infer = infer_custom,
          .lowering = {.stowage = {forward_custom_stowage, backward_custom},
                       .pytorch = {forward_custom_pytorch, backward_custom}}};
}

}  // namespace stowage
