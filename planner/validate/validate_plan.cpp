#include "planner/validate/validate_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "planner/validate/checks.hpp"

namespace stowage {

namespace {

constexpr std::array<std::string_view, 23> check_names{"structure",
                                                       "description",
                                                       "nodes",
                                                       "storages",
                                                       "step hash",
                                                       "workspaces",
                                                       "devices",
                                                       "inputs present",
                                                       "outputs placed",
                                                       "temporaries placed",
                                                       "transfers placed",
                                                       "copies current",
                                                       "steady state",
                                                       "GPU arena",
                                                       "host arena",
                                                       "GPU peak",
                                                       "arena bound",
                                                       "budget",
                                                       "transferred bytes",
                                                       "transfer bound",
                                                       "cost",
                                                       "cost bound",
                                                       "step time"};

void append(std::vector<Check>& checks, std::vector<Check> more) {
  checks.insert(checks.end(), std::make_move_iterator(more.begin()),
                std::make_move_iterator(more.end()));
}

// A check that an earlier failure made impossible is listed, and is no pass.
void list_unchecked(std::vector<Check>& checks) {
  const auto culprit =
      std::find_if(checks.begin(), checks.end(), [](const Check& check) { return !check.passed; });
  const std::string reason =
      fmt::format("not checked: '{}' failed", culprit == checks.end() ? "" : culprit->name);
  for (const std::string_view name : check_names) {
    const bool listed = std::any_of(checks.begin(), checks.end(), [&](const Check& check) {
      return check.name == name || check.name == fmt::format("{} not compared", name);
    });
    if (!listed) checks.push_back({std::string(name), false, reason});
  }
}

std::vector<Check> run_checks(const Plan& plan, WorkspaceSource& workspaces) {
  std::vector<Check> checks{check_structure(plan)};
  if (!checks.front().passed) return checks;
  LoweredAgain lowered = lower_again(plan, workspaces);
  checks.push_back(std::move(lowered.description));
  if (lowered.step) append(checks, check_against_step(plan, *lowered.step));
  return checks;
}

}  // namespace

bool PlanValidation::passed() const {
  return !checks.empty() &&
         std::all_of(checks.begin(), checks.end(), [](const Check& check) { return check.passed; });
}

Check verdict(std::string name, const Violations& violations, std::string counted) {
  if (violations.count == 0) return {std::move(name), true, std::move(counted)};
  std::string detail = fmt::format("{}", fmt::join(violations.first, "; "));
  const std::int64_t more = violations.count - static_cast<std::int64_t>(violations.first.size());
  if (more > 0) detail += fmt::format("; and {} more", more);
  return {std::move(name), false, std::move(detail)};
}

std::string step_label(const Plan& plan, std::int32_t step) {
  if (step == static_cast<std::int32_t>(plan.nodes.size())) return "the step's end";
  return fmt::format("'{}' (step {})", plan.nodes[static_cast<std::size_t>(step)].name, step);
}

std::string storage_label(const Plan& plan, StorageId storage) {
  return fmt::format("'{}'", plan.storages[storage.index()].name);
}

std::vector<Check> check_against_step(const Plan& plan, const SizedStep& step) {
  std::vector<Check> checks = compare_with_step(plan, step);
  // Without the same nodes and storages there is nothing to walk; a wrong hash alone does not keep
  // the rest from being looked at.
  if (!checks[0].passed || !checks[1].passed) return checks;
  checks.push_back(check_workspaces(plan, step));
  checks.push_back(check_devices(plan, *step.graph));
  append(checks, check_presence(plan, *step.graph));
  append(checks, check_memory(plan));
  append(checks, check_totals(plan, step));
  return checks;
}

PlanValidation validate_plan(const Plan& plan, WorkspaceSource& workspaces) {
  PlanValidation validation{run_checks(plan, workspaces)};
  list_unchecked(validation.checks);
  return validation;
}

}  // namespace stowage
