#include "estimator/onnx/onnx_file.hpp"

namespace stowage {

const OnnxAttribute* OnnxNode::find(std::string_view attribute) const {
  for (const OnnxAttribute& candidate : attributes) {
    if (candidate.name == attribute) return &candidate;
  }
  return nullptr;
}

std::int64_t OnnxNode::integer(std::string_view attribute, std::int64_t otherwise) const {
  const OnnxAttribute* found = find(attribute);
  return found != nullptr ? found->integer : otherwise;
}

double OnnxNode::real(std::string_view attribute, double otherwise) const {
  const OnnxAttribute* found = find(attribute);
  return found != nullptr ? found->real : otherwise;
}

std::string OnnxNode::text(std::string_view attribute, std::string_view otherwise) const {
  const OnnxAttribute* found = find(attribute);
  return found != nullptr ? found->text : std::string(otherwise);
}

std::vector<std::int64_t> OnnxNode::integers(std::string_view attribute) const {
  const OnnxAttribute* found = find(attribute);
  return found != nullptr ? found->integers : std::vector<std::int64_t>();
}

OnnxTensor tensor_of_constant(const OnnxNode& node) {
  OnnxTensor tensor;
  for (const OnnxAttribute& attribute : node.attributes) {
    if (attribute.name == "value" && attribute.tensor) return *attribute.tensor;
    OnnxTensor other{.has_numbers = true};
    if (attribute.name == "value_int") other.integers = {attribute.integer};
    if (attribute.name == "value_ints") other.integers = attribute.integers;
    if (attribute.name == "value_float") other.reals = {attribute.real};
    if (attribute.name == "value_floats") other.reals = attribute.reals;
    if (!attribute.name.starts_with("value_")) continue;
    const bool is_real = attribute.name.starts_with("value_float");
    other.type = static_cast<int>(is_real ? OnnxType::float32 : OnnxType::int64);
    const std::size_t count = is_real ? other.reals.size() : other.integers.size();
    if (attribute.name.ends_with('s')) other.dims = {static_cast<std::int64_t>(count)};
    tensor = std::move(other);
  }
  return tensor;
}

}  // namespace stowage
