#include "answers/planning/diff.hpp"

#include <fmt/format.h>

#include <utility>

#include "answers/planning/asked_plan.hpp"

namespace stowage {

namespace {

std::string different_steps(const PlanComparison& comparison) {
  return fmt::format(
      "the plans are of different steps, compared by name: {} kernels and {} storages are in both; "
      "{} and {} in the first alone, {} and {} in the second",
      comparison.compared_nodes, comparison.compared_storages, comparison.nodes_only_before,
      comparison.storages_only_before, comparison.nodes_only_after, comparison.storages_only_after);
}

}  // namespace

Result<DiffAnswer> answer(const DiffQuestion& question) {
  auto before = read_asked_plan(question.before);
  if (!before) return tl::unexpected(std::move(before.error()));
  auto after = read_asked_plan(question.after);
  if (!after) return tl::unexpected(std::move(after.error()));
  auto comparison = compare_plans(*before, *after);
  if (!comparison) return tl::unexpected(std::move(comparison.error()));
  DiffAnswer found{*std::move(before), *std::move(after), *std::move(comparison), {}};
  if (!found.comparison.same_step) {
    found.notes.push_back(
        {.severity = Severity::note, .message = different_steps(found.comparison)});
  }
  return found;
}

}  // namespace stowage
