#include "answers/planning/placement.hpp"

#include "planner/problem/step_names.hpp"

namespace stowage {

namespace {

NamedThings logged_things(const Plan& plan, const PlannedProblem& planned) {
  NamedThings things{.is_scope = true};
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) things.nodes.push_back(NodeId::of(i));
  for (std::size_t i = 0; i < plan.step.graph->storages.size(); ++i) {
    const StorageId id = StorageId::of(i);
    const StorageState state = state_of(planned, id);
    if (!has_a_place(plan.storage(id)) || state == StorageState::unused) continue;
    const bool pinned = plan.pins.of(id) != Pin::free;
    if (is_variable(plan.storage(id)) || state != StorageState::on_gpu || pinned) {
      things.storages.push_back(id);
    }
  }
  return things;
}

}  // namespace

std::string_view device_word(Device device) { return device == Device::gpu ? "gpu" : "cpu"; }

std::vector<PlacedRow> placed_rows(const Plan& plan, const PlannedProblem& planned,
                                   const NamedThings& things) {
  std::vector<PlacedRow> rows;
  for (const NodeId node : things.nodes) {
    rows.push_back({.kind = PlacedKind::kernel,
                    .device = device_word(planned.placement.device[node.index()]),
                    .name = plan.kernel(node).name,
                    .reason = reason_of(plan, planned, node)});
  }
  for (const StorageId storage : things.storages) {
    const Storage& described = plan.storage(storage);
    rows.push_back({.kind = is_variable(described) ? PlacedKind::variable : PlacedKind::storage,
                    .device = to_string(state_of(planned, storage)),
                    .name = described.name,
                    .bytes = plan.bytes(storage),
                    .reason = reason_of(plan, planned, storage)});
  }
  return rows;
}

Result<std::vector<PlacedRow>> placement_log(const Plan& plan) {
  return planned_problem(plan).map([&](const PlannedProblem& planned) {
    return placed_rows(plan, planned, logged_things(plan, planned));
  });
}

}  // namespace stowage
