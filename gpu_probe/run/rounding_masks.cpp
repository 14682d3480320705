#include "gpu_probe/run/rounding_masks.hpp"

#include <algorithm>
#include <cmath>

#include "gpu_probe/run/float_elements.hpp"
#include "gpu_probe/run/tolerance.hpp"

namespace stowage {
namespace {

double largest_of(const FloatElements& values) {
  double largest = 0;
  for (std::size_t i = 0; i < values.size(); ++i) largest = std::max(largest, std::abs(values[i]));
  return largest;
}

/// Whether the node makes an update that does not get smaller with the gradient.
bool divides_by_gradient(const KernelNode& node) {
  return node.phase == Phase::update && node.kernel != Kernel::sgd_update &&
         node.reads.size() >= 2 && !node.writes.empty() && is_floating_point(node.reads[1].type) &&
         is_floating_point(node.writes[0].type) && node.reads[1].shape == node.writes[0].shape;
}

}  // namespace

ElementMasks rounding_masks(const StepGraph& graph, const StepResults& expected) {
  double largest = 0;
  for (const TensorView& gradient : graph.gradients) {
    const auto found = expected.find(gradient.storage);
    if (!is_floating_point(gradient.type) || found == expected.end()) continue;
    largest = std::max(largest, largest_of({found->second, gradient.type}));
  }
  const double limit = rounding_share(graph) * largest;
  ElementMasks masks;
  for (const KernelNode& node : graph.nodes) {
    if (node.phase == Phase::update && node.kernel == Kernel::cast) {
      // The parameter is its float32 copy, rounded.
      const auto copy = masks.find(node.reads[0].storage);
      if (copy != masks.end()) masks[node.writes[0].storage] = std::vector<bool>(copy->second);
      continue;
    }
    if (!divides_by_gradient(node)) continue;
    const auto found = expected.find(node.reads[1].storage);
    if (found == expected.end()) continue;
    std::vector<bool>& mask = masks[node.writes[0].storage];
    const FloatElements gradient(found->second, node.reads[1].type);
    for (std::size_t at = 0; at < gradient.size(); ++at) {
      mask.push_back(std::abs(gradient[at]) <= limit);
    }
  }
  return masks;
}

}  // namespace stowage
