#include "estimator/rewrite/kept_results.hpp"

#include <fmt/format.h>

#include <map>
#include <set>

namespace stowage {

std::optional<Diagnostic> overwritten_result(const StepGraph& step,
                                             const std::vector<CheckpointRegion>& regions) {
  std::set<OperatorId> kept;
  for (const CheckpointRegion& region : regions)
    kept.insert(region.kept.begin(), region.kept.end());
  if (kept.empty()) return std::nullopt;
  std::map<StorageId, OperatorId> results;
  for (const KernelNode& node : step.nodes) {
    if (!runs_forward(node)) continue;
    for (const TensorView& written : node.writes) {
      if (kept.contains(node.op)) results.emplace(written.storage, node.op);
      const auto found = results.find(written.storage);
      if (found == results.end() || found->second == node.op) continue;
      return Diagnostic{.message = fmt::format("'{}' overwrites the result of '{}', which a "
                                               "selective checkpoint is to keep",
                                               step.layer(node.op), step.layer(found->second))};
    }
  }
  return std::nullopt;
}

}  // namespace stowage
