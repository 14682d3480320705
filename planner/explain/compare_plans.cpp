#include "planner/explain/compare_plans.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "planner/plan/two_sides.hpp"

namespace stowage {

namespace {

NodePlace place_of(const Plan& plan, const std::vector<bool>& beside, std::size_t node) {
  const PlannedNode& planned = plan.nodes[node];
  return {device_of(plan, planned), beside[node], planned.engine, planned.workspace};
}

std::vector<StoragePlace> storage_places(const Plan& plan, const PlannedProblem& planned) {
  std::vector<StoragePlace> places;
  for (std::size_t i = 0; i < plan.step.graph->storages.size(); ++i) {
    places.push_back({state_of(planned, StorageId::of(i)), Bytes(), Bytes()});
  }
  for (const Transfer& transfer : plan.transfers) {
    StoragePlace& place = places[transfer.storage.index()];
    (direction_of(plan, transfer) == Direction::h2d ? place.h2d : place.d2h) +=
        plan.bytes(transfer.storage);
  }
  return places;
}

template <typename Row>
std::unordered_map<std::string_view, std::size_t> numbers_by_name(const std::vector<Row>& rows) {
  std::unordered_map<std::string_view, std::size_t> numbers;
  for (std::size_t i = 0; i < rows.size(); ++i) numbers.emplace(rows[i].name, i);
  return numbers;
}

std::int64_t moved_bytes(const StorageChange& change) {
  return std::abs((change.after.h2d + change.after.d2h).count() -
                  (change.before.h2d + change.before.d2h).count());
}

void compare_nodes(const Plan& before, const Plan& after, PlanComparison& result) {
  const auto number = numbers_by_name(after.step.graph->nodes);
  const std::vector<bool> beside_before = nodes_beside_gpu(before);
  const std::vector<bool> beside_after = nodes_beside_gpu(after);
  for (std::size_t i = 0; i < before.nodes.size(); ++i) {
    const std::string& name = before.step.graph->nodes[i].name;
    const auto found = number.find(name);
    if (found == number.end()) {
      ++result.nodes_only_before;
      continue;
    }
    ++result.compared_nodes;
    NodeChange change{name, place_of(before, beside_before, i),
                      place_of(after, beside_after, found->second)};
    if (change.before != change.after) result.nodes.push_back(std::move(change));
  }
  result.nodes_only_after = static_cast<std::int64_t>(after.nodes.size()) - result.compared_nodes;
}

void compare_storages(const Plan& before, const PlannedProblem& planned_before, const Plan& after,
                      const PlannedProblem& planned_after, PlanComparison& result) {
  const auto number = numbers_by_name(after.step.graph->storages);
  const auto places_before = storage_places(before, planned_before);
  const auto places_after = storage_places(after, planned_after);
  for (std::size_t i = 0; i < places_before.size(); ++i) {
    const std::string& name = before.step.graph->storages[i].name;
    const auto found = number.find(name);
    if (found == number.end()) {
      ++result.storages_only_before;
      continue;
    }
    ++result.compared_storages;
    StorageChange change{name, after.bytes(StorageId::of(found->second)), places_before[i],
                         places_after[found->second]};
    if (change.before != change.after) result.storages.push_back(std::move(change));
  }
  result.storages_only_after =
      static_cast<std::int64_t>(places_after.size()) - result.compared_storages;
  std::ranges::sort(result.storages, [](const StorageChange& a, const StorageChange& b) {
    return std::tuple(-moved_bytes(a), std::string_view(a.name)) <
           std::tuple(-moved_bytes(b), std::string_view(b.name));
  });
}

}  // namespace

Result<PlanComparison> compare_plans(const Plan& before, const Plan& after) {
  const auto planned_before = planned_problem(before);
  if (!planned_before) return tl::unexpected(planned_before.error());
  const auto planned_after = planned_problem(after);
  if (!planned_after) return tl::unexpected(planned_after.error());
  PlanComparison result;
  result.same_step = before.inputs.step_hash == after.inputs.step_hash;
  compare_nodes(before, after, result);
  compare_storages(before, *planned_before, after, *planned_after, result);
  return result;
}

}  // namespace stowage
