// Sequences of tensors: what torch.export writes for chunk and split. A sequence is known by its
// parts alone; nothing else may be done with one.
#include <fmt/format.h>

#include <array>

#include "estimator/onnx/checked_axes.hpp"
#include "estimator/onnx/translation_rules.hpp"

namespace stowage {

namespace {

// A null character cannot occur in a name of the file.
std::string part_name(const std::string& sequence, std::size_t part) {
  return fmt::format("{}{}{}", sequence, '\0', part);
}

// By parts of one size, the last smaller, or by a list of sizes.
std::vector<std::int64_t> part_sizes(const OnnxValue& split, std::int64_t extent) {
  constexpr std::int64_t most_parts = 1024;
  auto sizes = split.numbers().value_or(std::vector<std::int64_t>());
  if (split.rank() > 0 || sizes.size() != 1 || sizes[0] < 1) return sizes;
  const std::int64_t size = sizes[0];
  if (extent < 1 || extent / size >= most_parts) return {};
  sizes.assign(static_cast<std::size_t>(extent / size), size);
  if (extent % size != 0) sizes.push_back(extent % size);
  return sizes;
}

bool translate_split_to_sequence(Translation& translation, const OnnxNode& node) {
  const OnnxValue& x = translation.input(node, 0);
  const std::int64_t axis = node.integer("axis", 0);
  const auto place = axis_in(axis, x.rank());
  if (!place || !x.type.shape[*place].is_constant() || node.outputs.empty()) return false;
  const auto sizes = part_sizes(translation.input(node, 1), x.type.shape[*place].constant);
  if (sizes.empty() || node.integer("keepdims", 1) == 0) {
    translation.refuse("its parts are no constants");
    return false;
  }
  if (sizes.size() == 1) {
    translation.set_value(part_name(node.outputs[0], 0), x);
  } else {
    const auto made = translation.layer(node, "split", {translation.activation(x)},
                                        {{"axis", axis}, {"sizes", sizes}});
    if (!made) return false;
    const auto& parts = translation.layers().at(*made).outputs;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      translation.set_value(part_name(node.outputs[0], i), {.kind = OnnxValue::Kind::activation,
                                                            .type = parts[i],
                                                            .layer = {*made, static_cast<int>(i)}});
    }
  }
  translation.set_value(node.outputs[0], OnnxValue());
  return true;
}

bool translate_sequence_at(Translation& translation, const OnnxNode& node) {
  const auto number = translation.input(node, 1).integer();
  if (!number || *number < 0 || node.inputs.empty()) {
    translation.refuse("its place is not a constant");
    return false;
  }
  const OnnxValue* part =
      translation.find(part_name(node.inputs[0], static_cast<std::size_t>(*number)));
  if (part == nullptr) {
    translation.refuse("the sequence has no such part");
    return false;
  }
  translation.set_output(node, *part);
  return true;
}

}  // namespace

std::span<const OnnxRule> onnx_sequence_rules() {
  static constexpr std::array rules{
      OnnxRule{"SplitToSequence", translate_split_to_sequence},
      OnnxRule{"SequenceAt", translate_sequence_at},
  };
  return rules;
}

}  // namespace stowage
