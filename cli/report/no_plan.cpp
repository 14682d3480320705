#include "cli/report/no_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "cli/options/advice.hpp"
#include "cli/options/cure_options.hpp"
#include "cli/output/signals.hpp"
#include "cli/report/plan_report.hpp"
#include "estimator/base/largest_memory.hpp"
#include "planner/propose/fit_host.hpp"
#include "planner/propose/least_budget.hpp"
#include "planner/propose/proposals.hpp"

namespace stowage {
namespace {

constexpr Bytes typed_unit = 1_MiB;

std::string in_typed_units(Bytes bytes) {
  return fmt::format("{}MiB", round_up(bytes, typed_unit).count() / typed_unit.count());
}

/// The smallest total, in typed units, that leaves so much for an arena; none: no total does.
std::optional<Bytes> least_total(Bytes arena, const ArenaOfTotal& arena_of) {
  std::int64_t without = 0, with = largest_memory.count() / typed_unit.count();
  if (arena_of(Bytes(with * typed_unit.count())) < arena) return std::nullopt;
  while (with - without > 1) {
    const std::int64_t middle = without + (with - without) / 2;
    (arena_of(Bytes(middle * typed_unit.count())) < arena ? without : with) = middle;
  }
  return Bytes(with * typed_unit.count());
}

/// What the host needs for a plan within so large a budget; none: it holds one.
std::optional<Bytes> missing_host_memory(PlanRequest request, Bytes budget,
                                         WorkspaceSource& workspaces,
                                         const ProposalOptions& options) {
  request.budget = budget;
  const auto plans = make_plans(request, workspaces, options);
  if (!plans || std::ranges::any_of(*plans, [&](const Plan& plan) {
        return why_not_taken(plan, request.host).empty();
      })) {
    return std::nullopt;
  }
  return least_host_memory(*plans);
}

/// What would do is looked for as long as the plans were.
ProposalOptions search_options(const PlanningRequest& asked) {
  return {.time_limit_seconds = asked.time_limit_seconds, .cancelled = interrupted};
}

AdviceChanges repeating_the_plan() {
  return {.repeat = {"placement", "pin", "no-soft-placement", "host", "host-memory", "budget"}};
}

}  // namespace

void add_least_memory(const PlanningRequest& asked, const PlanRequest& request,
                      const ArenaOfTotal& arena_of, WorkspaceSource& workspaces, Report& report) {
  const auto least = least_budget(request, workspaces, search_options(asked));
  if (!least || !*least) return;
  const LeastBudget& found = **least;
  AdviceChanges changes = repeating_the_plan();
  const Bytes budget = round_up(found.bytes, typed_unit);
  Json total;
  std::string memory = fmt::format("--budget {}", in_typed_units(budget));
  const bool has_budget = asked.budget || asked.budget_share;
  if (has_budget) changes.set["budget"] = in_typed_units(budget);
  if (asked.card && (!has_budget || budget > request.available)) {
    const auto needed = least_total(has_budget ? budget : found.bytes, arena_of);
    if (!needed) return;
    total = Json(*needed);
    changes.set["gpu-memory"] = in_typed_units(*needed);
    memory = fmt::format("--gpu-memory {}{}", in_typed_units(*needed),
                         has_budget ? " with " + memory : "");
  }
  if (!found.host_holds_it) {
    if (const auto host = missing_host_memory(request, budget, workspaces, search_options(asked))) {
      changes.set["host-memory"] = in_typed_units(*host);
      memory += fmt::format(" and --host-memory {}", in_typed_units(*host));
    }
  }
  const std::string command = advice(asked.step.typed, "plan", changes);
  report.json.emplace_back("least", Json::Object{{"arena_bytes", found.bytes},
                                                 {"gpu_memory_bytes", std::move(total)},
                                                 {"plan", found.plan},
                                                 {"command", command}});
  report.say(fmt::format("  the least that would do is {}: an arena of {}, by '{}'", memory,
                         format_bytes(found.bytes), found.plan));
  report.say("  " + command);
}

std::optional<Bytes> least_host_memory(const std::vector<Plan>& plans) {
  std::optional<Bytes> least;
  for (const Plan& plan : plans) {
    if (changes_training(plan)) continue;
    const Bytes needed = host_memory_for(plan.totals);
    if (!least || needed < *least) least = needed;
  }
  return least;
}

void add_least_host_memory(const PlanningRequest& asked, Bytes least, Report& report) {
  AdviceChanges changes = repeating_the_plan();
  changes.set["host-memory"] = in_typed_units(least);
  const std::string command = advice(asked.step.typed, "plan", changes);
  report.json.emplace_back("least_host",
                           Json::Object{{"memory_bytes", least}, {"command", command}});
  report.say(fmt::format("  the least found that would do is --host-memory {}, half of it pinned",
                         in_typed_units(least)));
  report.say("  " + command);
}

Report no_plan_report(const PlanRequest& request, const Diagnostics& why) {
  Report report;
  const Diagnostic& first = why.front();
  Json::Array parts;
  for (const Diagnostic& note : first.notes) parts.emplace_back(note.message);
  report.json = {{"plans", Json::Array{}},
                 {"budget_bytes", request.budget.bytes},
                 {"culprit", first.message},
                 {"culprit_parts", std::move(parts)}};
  report.say(fmt::format("no plan keeps within {}", format_bytes(request.budget.bytes)), Tone::bad);
  report.say("  " + first.message);
  for (const Diagnostic& note : first.notes) report.say("    " + note.message);
  if (!first.hint.empty()) report.say("  " + in_options(first.hint));
  return report;
}

}  // namespace stowage
