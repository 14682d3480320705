#include "estimator/step/foreign_kernels.hpp"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "estimator/step/kernel_table.hpp"

namespace stowage {

std::string nearest_kernel(std::string_view name) {
  constexpr std::size_t longest = 64;
  if (name.size() > longest) return {};
  std::vector<std::string_view> names;
  for (const KernelRow& row : kernel_table()) names.push_back(row.name);
  return did_you_mean(name, names);
}

Diagnostics misspelt_kernels(const StepGraph& graph) {
  constexpr std::size_t most_names = 20;
  Diagnostics warnings;
  if (!graph.kernel_set().executable) return warnings;
  std::set<std::string_view> seen;
  for (const KernelNode& node : graph.nodes) {
    if (node.kernel != Kernel::foreign || !seen.insert(kernel_name(node)).second) continue;
    if (std::string hint = nearest_kernel(kernel_name(node)); !hint.empty()) {
      warnings.push_back({.severity = Severity::warning,
                          .message = fmt::format("node '{}' calls '{}', which is no kernel of this "
                                                 "program and runs nowhere",
                                                 node.name, kernel_name(node)),
                          .hint = std::move(hint)});
    }
    if (seen.size() == most_names) break;
  }
  return warnings;
}

}  // namespace stowage
