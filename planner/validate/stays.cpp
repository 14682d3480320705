#include "planner/validate/stays.hpp"

namespace stowage {

std::vector<std::vector<Use>> uses_of(const Plan& plan) {
  std::vector<std::vector<Use>> uses(plan.step.graph->storages.size());
  const auto use = [&](StorageId storage, std::int32_t step, bool reads) {
    std::vector<Use>& of = uses[storage.index()];
    if (of.empty() || of.back().step != step) of.push_back({step, false});
    of.back().reads = of.back().reads || reads;
  };
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const KernelNode& node = plan.step.graph->nodes[i];
    const auto step = static_cast<std::int32_t>(i);
    for (const TensorView& view : node.reads) use(view.storage, step, true);
    for (const TensorView& view : node.writes) use(view.storage, step, false);
  }
  return uses;
}

Stays::Stays(const Plan& plan)
    : steps_(static_cast<std::int32_t>(plan.nodes.size())),
      ranges_(plan.step.graph->storages.size()),
      arrives_at_start_(plan.step.graph->storages.size(), false) {
  for (const Residence& residence : residences_on(plan, Device::gpu)) {
    ranges_[residence.storage.index()].push_back(residence.steps);
  }
  for (const Transfer& transfer : plan.transfers) {
    if (transfer.begin > 0 || direction_of(plan, transfer) != Direction::h2d) continue;
    arrives_at_start_[transfer.storage.index()] = true;
  }
}

bool goes_round(const Storage& storage, const std::vector<Use>& uses) {
  return storage.persistence == Persistence::persistent &&
         (storage.carries_over || uses.front().reads);
}

}  // namespace stowage
