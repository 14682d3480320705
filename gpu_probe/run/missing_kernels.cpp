#include "gpu_probe/run/missing_kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "planner/plan/two_sides.hpp"

namespace stowage {
namespace {

/// The types that a node needs of its kernel: its floating-point arguments', or its first one's.
std::vector<DataType> types_of(const KernelNode& node) {
  std::vector<DataType> types;
  for (const auto* views : {&node.reads, &node.writes}) {
    for (const TensorView& view : *views) {
      if (is_floating_point(view.type)) types.push_back(view.type);
    }
  }
  if (!types.empty()) return types;
  if (!node.reads.empty()) return {node.reads.front().type};
  if (!node.writes.empty()) return {node.writes.front().type};
  return {};
}

/// The first type that the kernel does not run in.
std::optional<DataType> missing_type(const KernelNode& node, KernelDevice device) {
  const auto there = kernel_types(node.kernel, device);
  for (const DataType type : types_of(node)) {
    if (std::find(there.begin(), there.end(), type) == there.end()) return type;
  }
  return std::nullopt;
}

std::string text_of(const KernelNode& node, DataType type, KernelDevice device) {
  const std::string_view why = why_nowhere(node.kernel);
  return fmt::format("'{}' calls {} in {}, which the {} kernels do not have{}{}{}", node.name,
                     kernel_name(node), to_string(type), to_string(device), why.empty() ? "" : " (",
                     why, why.empty() ? "" : ")");
}

}  // namespace

std::vector<std::string> missing_kernels(const Plan& plan, KernelDevice gpu) {
  const StepGraph& graph = *plan.step.graph;
  std::vector<std::string> texts;
  std::set<std::tuple<std::string_view, DataType, KernelDevice>> said;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const KernelNode& node = graph.nodes[i];
    std::vector<KernelDevice> devices{KernelDevice::host};
    if (device_of(plan, plan.nodes[i]) == Device::gpu && gpu != KernelDevice::host)
      devices.push_back(gpu);
    for (const KernelDevice device : devices) {
      const auto type = missing_type(node, device);
      if (!type || !said.emplace(kernel_name(node), *type, device).second) continue;
      texts.push_back(text_of(node, *type, device));
    }
  }
  return texts;
}

}  // namespace stowage
