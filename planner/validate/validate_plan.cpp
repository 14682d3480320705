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

constexpr auto check_names = std::to_array<std::string_view>({
    "structure",
    "step hash",
    "description hash",
    "engines",
    "devices",
    "pins",
    "placement",
    "inputs present",
    "outputs placed",
    "temporaries placed",
    "transfers placed",
    "copies current",
    "CPU windows",
    "steady state",
    "GPU arena",
    "host arena",
    "pageable arena",
    "GPU peak",
    "arena bound",
    "budget",
    "transferred bytes",
    "transfer bound",
    "cost",
    "cost bound",
    "step time",
    "step bound",
    "least workspaces",
    "cost certificate",
    "transfer certificate",
    "step certificate",
    "workspaces",
});

void append(std::vector<Check>& checks, std::vector<Check> more) {
  checks.insert(checks.end(), std::make_move_iterator(more.begin()),
                std::make_move_iterator(more.end()));
}

// A check that an earlier failure made impossible is listed as failed.
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
  return fmt::format("'{}' (step {})", plan.kernel(NodeId{step}).name, step);
}

std::string storage_label(const Plan& plan, StorageId storage) {
  return fmt::format("'{}'", plan.storage(storage).name);
}

std::vector<Check> check_plan(const Plan& plan) {
  std::vector<Check> checks{check_structure(plan)};
  if (!checks.front().passed) return checks;
  checks.push_back(check_step_hash(plan));
  checks.push_back(check_description_hash(plan));
  checks.push_back(check_engines(plan));
  checks.push_back(check_devices(plan));
  checks.push_back(check_pins(plan));
  checks.push_back(check_levers(plan));
  append(checks, check_presence(plan));
  append(checks, check_memory(plan));
  append(checks, check_totals(plan));
  append(checks, check_certificate(plan));
  return checks;
}

PlanValidation validate_plan(const Plan& plan, WorkspaceSource& workspaces) {
  PlanValidation validation{check_plan(plan)};
  if (validation.checks.front().passed) {
    const auto asked = size_step(plan.step.graph, plan.step.batch, workspaces);
    validation.checks.push_back(asked ? check_workspaces(plan, asked->engines)
                                      : Check{"workspaces", false, asked.error().front().message});
  }
  list_unchecked(validation.checks);
  return validation;
}

}  // namespace stowage
