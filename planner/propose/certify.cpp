#include "planner/propose/certify.hpp"

#include <algorithm>

namespace stowage {

BoundScope scope_of(const ProblemOptions& options) {
  return {.compute_on_gpu = options.compute_on_gpu || options.all_on_gpu,
          .updates_on_gpu = options.updates_on_gpu || options.all_on_gpu,
          .keep_activations = options.keep_activations,
          .keep_unsaved = options.keep_unsaved,
          .keep_weights = options.keep_weights,
          .keep_state = options.keep_state};
}

bool keeps_as_if_pinned(const BoundScope& scope) {
  const bool keeps_of_updates = scope.keep_weights || scope.keep_state;
  const bool keeps_results = scope.keep_activations || scope.keep_unsaved;
  if (!keeps_results && !keeps_of_updates) return true;
  return scope.compute_on_gpu && (scope.updates_on_gpu || !keeps_of_updates);
}

std::vector<NodeWorkspace> least_workspaces(const SizedStep& step) {
  std::vector<NodeWorkspace> workspaces;
  for (std::size_t i = 0; i < step.engines.size(); ++i) {
    if (step.engines[i].empty()) continue;
    const Bytes least =
        std::ranges::min_element(step.engines[i], {}, &Engine::workspace)->workspace;
    if (least > Bytes()) workspaces.push_back({static_cast<std::int32_t>(i), least});
  }
  return workspaces;
}

StepBound larger_bound(const BoundScope& scope, const LaneBalance& lanes, const SplitBound& split) {
  if (split.seconds <= lanes.step_lower_bound_seconds) {
    const LaneWeights& weights = lanes.weights;
    return {
        lanes.step_lower_bound_seconds,
        LaneProof{scope, weights.gpu, weights.cpu, weights.upload, weights.download, lanes.prices}};
  }
  if (split.node >= 0) {
    return {split.seconds,
            SplitProof{scope, split.node, split.downloads, split.uploads, split.cpu}};
  }
  return {split.seconds, LaneProof{.scope = scope, .gpu = 1 - split.cpu, .cpu = split.cpu}};
}

}  // namespace stowage
