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

}  // namespace stowage
