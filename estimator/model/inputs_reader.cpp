#include "estimator/model/inputs_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "estimator/model/sections.hpp"

namespace stowage {

namespace {

constexpr std::string_view input_keys[] = {"shape", "dtype"};
constexpr std::string_view type_names[] = {"float32", "float64", "float16", "bfloat16",
                                           "int64",   "int32",   "uint8",   "bool"};

std::string type_hint(const YamlNode& node) {
  std::string hint = node.is_scalar() ? did_you_mean(node.text, type_names) : std::string();
  return hint.empty() ? fmt::format("dtypes are {}", fmt::join(type_names, ", ")) : hint;
}

void read_input(const YamlNode& node, const ModelDescription& model, InputDeclaration& input,
                Mistakes& mistakes) {
  static const AttributeSpec shape_spec{
      .name = "shape", .type = AttributeType::dimensions, .minimum = 1};
  input.broken = true;
  if (node.is_mapping()) refuse_unknown_keys(node, input_keys, "an input", mistakes);
  if (const YamlNode* type = node.is_mapping() ? node.find("dtype") : nullptr) {
    const auto parsed = type->is_scalar() ? parse_data_type(type->text) : std::nullopt;
    if (parsed)
      input.type.type = *parsed;
    else
      mistakes.error(type->mark,
                     type->is_scalar()
                         ? fmt::format("unknown dtype {}", describe(*type))
                         : fmt::format("'dtype' takes a word, not {}", describe(*type)),
                     type_hint(*type));
  }
  const YamlNode* shape = node.is_mapping() ? node.find("shape") : nullptr;
  if (shape == nullptr) {
    mistakes.error(node.mark, fmt::format("input '{}' needs a shape", input.name),
                   "such as {shape: [batch, 3, 224, 224]}");
    return;
  }
  const ValueRules rules{.names = {.model = model.value_names, .has_index = false}};
  const auto written = read_value(*shape, "shape", rules, mistakes);
  const auto value = written ? evaluate(*written, {.model = model.values}, mistakes) : std::nullopt;
  auto attribute =
      value ? to_attribute(shape_spec, input.name, *value, *written, mistakes) : std::nullopt;
  if (!attribute) return;
  input.type.shape = std::get<Shape>(std::move(*attribute));
  input.broken = false;
}

}  // namespace

void read_inputs(const YamlNode& root, ModelDescription& model, Mistakes& mistakes) {
  const YamlNode* node = find_section(root, "inputs", mistakes);
  if (node == nullptr) {
    if (root.find("inputs") == nullptr) {
      mistakes.error(root.mark, "the description has no 'inputs:'",
                     "such as 'inputs: {image: {shape: [batch, 3, 224, 224]}}'");
    }
    return;
  }
  for (std::size_t i = 0; i < node->entry_count(); ++i) {
    InputDeclaration input{.name = node->key(i).text, .mark = node->key(i).mark};
    if (!is_layer_name(input.name)) {
      mistakes.error(input.mark, fmt::format("'{}' is not a name", input.name),
                     layer_name_hint(input.name));
    }
    read_input(node->value(i), model, input, mistakes);
    model.inputs.push_back(std::move(input));
  }
}

}  // namespace stowage
