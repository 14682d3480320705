#include "planner/pytorch/host_parameters.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "estimator/rewrite/streamed_parameters.hpp"

namespace stowage {

namespace {

constexpr Bytes least_copy = 64_KiB;

}  // namespace

std::vector<ParameterId> host_parameters(const SizedStep& step, const ParameterUpdates& updates) {
  std::vector<ParameterId> parameters;
  for (const WholeGradient& one : updates.gradients) {
    if (step.bytes(one.gradient) >= least_copy) parameters.push_back(one.parameter);
  }
  return parameters;
}

Bytes host_updates_bound(const SizedStep& step, const ParameterUpdates& updates, Bytes excess) {
  const StepGraph& graph = *step.graph;
  std::vector<double> freed(graph.gradients.size()), crosses(graph.gradients.size());
  for (const WholeGradient& one : updates.gradients) {
    crosses[one.parameter.index()] = static_cast<double>(step.bytes(one.gradient).count());
  }
  for (std::size_t i = 0; i < graph.storages.size(); ++i) {
    const ParameterId owner = updates.owner[i];
    if (!owner.valid() || graph.storages[i].storage_class == StorageClass::parameter) continue;
    const Bytes rounded = round_up(step.storage_bytes[i], Bytes(streamed_alignment));
    freed[owner.index()] += static_cast<double>(rounded.count());
  }
  std::vector<std::size_t> order;
  for (std::size_t p = 0; p < freed.size(); ++p) {
    if (crosses[p] > 0 && freed[p] > crosses[p]) order.push_back(p);
  }
  std::ranges::sort(order, std::greater<>(),
                    [&](std::size_t p) { return std::pair(freed[p] / crosses[p], p); });
  auto left = static_cast<double>(excess.count());
  double crossing = 0;
  for (const std::size_t p : order) {
    const double share = std::min(1.0, left / freed[p]);
    crossing += share * crosses[p];
    left -= share * freed[p];
  }
  return Bytes(static_cast<std::int64_t>(crossing + left)) * 2;
}

UpdateTimes update_times(const SizedStep& step, const ParameterUpdates& updates, const Rates& rates,
                         const UpdateChoice& choice) {
  UpdateTimes times{.early = choice.early};
  if (choice.changes_nothing()) return times;
  Bytes gradients;
  for (const WholeGradient& one : updates.gradients) gradients += step.bytes(one.gradient);
  double seconds = 0;
  for (std::size_t n = 0; n < step.graph->nodes.size(); ++n) {
    if (step.graph->nodes[n].phase != Phase::update) continue;
    seconds += cpu_seconds(rates, step, NodeId::of(n));
  }
  times.cpu_seconds_a_byte = seconds / static_cast<double>(std::max(gradients, Bytes(1)).count());
  if (choice.early) times.hooks = updates.gradients.size();
  return times;
}

}  // namespace stowage
