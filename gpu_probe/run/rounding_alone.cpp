#include "gpu_probe/run/rounding_alone.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace stowage {
namespace {

std::vector<float> floats_of(const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

double largest_of(const std::vector<float>& values) {
  double largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(double{value}));
  return largest;
}

/// Whether the node takes a step that does not shrink with the gradient.
bool divides_by_gradient(const KernelNode& node) {
  return node.phase == Phase::update && node.kernel != Kernel::sgd_update &&
         node.reads.size() >= 2 && !node.writes.empty() &&
         node.reads[1].type == DataType::float32 && node.writes[0].type == DataType::float32 &&
         node.reads[1].shape == node.writes[0].shape;
}

}  // namespace

ElementMasks rounding_alone(const StepGraph& graph, const StepResults& expected) {
  double largest = 0;
  for (const TensorView& gradient : graph.gradients) {
    const auto found = expected.find(gradient.storage);
    if (gradient.type != DataType::float32 || found == expected.end()) continue;
    largest = std::max(largest, largest_of(floats_of(found->second)));
  }
  ElementMasks masks;
  for (const KernelNode& node : graph.nodes) {
    if (!divides_by_gradient(node)) continue;
    const auto found = expected.find(node.reads[1].storage);
    if (found == expected.end()) continue;
    std::vector<bool>& mask = masks[node.writes[0].storage];
    for (const float value : floats_of(found->second)) {
      mask.push_back(std::abs(double{value}) <= rounding_share * largest);
    }
  }
  return masks;
}

}  // namespace stowage
