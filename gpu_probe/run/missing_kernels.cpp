#include "gpu_probe/run/missing_kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "estimator/step/foreign_kernels.hpp"
#include "planner/plan/two_sides.hpp"

namespace stowage {
namespace {

// How many suggestions for misspelt names are made: a file may have any number of such names, and
// nobody reads many texts.
constexpr std::size_t most_suggestions = 20;

std::vector<DataType> types_of(const std::vector<TensorView>& views) {
  std::vector<DataType> types;
  types.reserve(views.size());
  for (const TensorView& view : views) types.push_back(view.type);
  return types;
}

/// The first of the node's types that the kernel does not have; for a kernel with no types at all,
/// the type of its first floating-point argument, or else of its first argument.
std::optional<DataType> missing_type(const KernelNode& node, KernelDevice device) {
  std::vector<DataType> types = types_of(node.reads);
  const std::vector<DataType> writes = types_of(node.writes);
  if (!kernel_types(node.kernel, device).empty()) {
    return unsupported_type(node.kernel, {types, writes}, device);
  }
  types.insert(types.end(), writes.begin(), writes.end());
  if (types.empty()) return std::nullopt;
  const auto floating = std::ranges::find_if(types, is_floating_point);
  return floating == types.end() ? types.front() : *floating;
}

std::string text_of(const KernelNode& node, DataType type, KernelDevice device, bool suggests) {
  std::string why(no_device_reason(node.kernel));
  if (suggests && node.kernel == Kernel::foreign) {
    const std::string meant = nearest_kernel(kernel_name(node));
    if (!meant.empty()) why += "; " + meant;
  }
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
      texts.push_back(text_of(node, *type, device, texts.size() < most_suggestions));
    }
  }
  return texts;
}

}  // namespace stowage
