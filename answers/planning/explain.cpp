#include "answers/planning/explain.hpp"

#include <utility>

#include "answers/planning/asked_plan.hpp"
#include "answers/question/question_error.hpp"

namespace stowage {

namespace {

Selection selection_of(const PlannedProblem& planned, const NamedThings& things) {
  Selection selection;
  for (const NodeId node : things.nodes) {
    selection.operations.push_back(static_cast<std::int32_t>(node.index()));
  }
  for (const StorageId storage : things.storages) {
    const std::int32_t item = planned.item_of[storage.index()];
    if (item >= 0) selection.items.push_back(item);
  }
  return selection;
}

}  // namespace

Result<ExplainAnswer> answer(const ExplainQuestion& question) {
  auto plan = read_asked_plan(question.plan);
  if (!plan) return tl::unexpected(std::move(plan.error()));
  auto things = find_name(*plan, question.name);
  if (!things) {
    things.error().front().span = question_error("").span;
    return tl::unexpected(std::move(things.error()));
  }
  const auto planned = planned_problem(*plan);
  if (!planned) return tl::unexpected(planned.error());
  ExplainAnswer found{.name = question.name,
                      .kernels = things->nodes.size(),
                      .storages = things->storages.size(),
                      .placement = placed_rows(*plan, *planned, *things),
                      .costs = alternative_costs(*planned, selection_of(*planned, *things))};
  found.plan = *std::move(plan);
  return found;
}

}  // namespace stowage
