#include "answers/planning/what_would_do.hpp"

#include <algorithm>
#include <cstdint>

#include "estimator/base/largest_memory.hpp"
#include "planner/propose/fit_host.hpp"
#include "planner/propose/least_budget.hpp"
#include "planner/propose/proposals.hpp"

namespace stowage {

namespace {

constexpr Bytes asked_unit = 1_MiB;

/// The smallest total, in whole units, that leaves so much for an arena; none: no total does.
std::optional<Bytes> least_total(Bytes arena, const ArenaOfTotal& arena_of) {
  std::int64_t without = 0, with = largest_memory.count() / asked_unit.count();
  if (arena_of(Bytes(with * asked_unit.count())) < arena) return std::nullopt;
  while (with - without > 1) {
    const std::int64_t middle = without + (with - without) / 2;
    (arena_of(Bytes(middle * asked_unit.count())) < arena ? without : with) = middle;
  }
  return Bytes(with * asked_unit.count());
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
  const auto least = least_host_memory(*plans);
  return least ? std::optional(round_up(least->memory, asked_unit)) : std::nullopt;
}

}  // namespace

std::optional<LeastMemory> find_least_memory(const PlanQuestion& question,
                                             const PlanRequest& request,
                                             const ArenaOfTotal& arena_of,
                                             WorkspaceSource& workspaces,
                                             const ProposalOptions& options) {
  const auto found = least_budget(request, workspaces, options);
  if (!found || !*found) return std::nullopt;
  LeastMemory least{.arena = (*found)->bytes,
                    .plan = (*found)->plan,
                    .budget = round_up((*found)->bytes, asked_unit)};
  const bool has_budget = question.budget || question.budget_share;
  if (question.card && (!has_budget || least.budget > request.available)) {
    least.card_total = least_total(has_budget ? least.budget : least.arena, arena_of);
    if (!least.card_total) return std::nullopt;
  }
  if (!(*found)->host_holds_it) {
    least.host_memory = missing_host_memory(request, least.budget, workspaces, options);
  }
  return least;
}

std::optional<LeastHostMemory> least_host_memory(const std::vector<Plan>& plans) {
  std::optional<LeastHostMemory> least;
  for (const Plan& plan : plans) {
    if (changes_training(plan)) continue;
    const Bytes needed = host_memory_for(plan.totals);
    if (!least || needed < least->memory) least = LeastHostMemory{needed};
  }
  return least;
}

bool changes_training(const Plan& plan) {
  return std::ranges::any_of(plan.remarks, [](const std::string& remark) {
    return remark.starts_with("changes the training");
  });
}

std::string why_not_taken(const Plan& plan, const Host& host) {
  if (changes_training(plan)) return "it changes the training";
  if (host.pinned_limit > Bytes() && plan.totals.host_peak > host.pinned_limit) {
    return "it needs more pinned memory than the host allows";
  }
  if (host.memory > Bytes() && plan.totals.host_peak + plan.totals.pageable_peak > host.memory) {
    return "it needs more memory than the host has";
  }
  return {};
}

}  // namespace stowage
