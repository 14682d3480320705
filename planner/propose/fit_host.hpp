// The host's memory as a second budget: pinned where copies go, all of it physical.
#pragma once

#include <string>
#include <vector>

#include "planner/assemble/shorten_step.hpp"
#include "planner/problem/host.hpp"

namespace stowage {

/// Whether the plan's arenas on the host are within its limits; a limit of 0 is none.
[[nodiscard]] bool host_holds(const Host& host, const PlanTotals& totals);
/// How much memory a host has that holds the plan, half of which may be pinned.
[[nodiscard]] Bytes host_memory_for(const PlanTotals& totals);
/// What the host holds before what it does not. Of steps that it holds the shorter one is before
/// the other; else the one with the smaller product of what it needs of a host and its seconds, so
/// that neither is had at any price.
struct HostRank {
  bool lacks = false;
  double value = 0;
  auto operator<=>(const HostRank&) const = default;
};
[[nodiscard]] HostRank host_rank(const Host& host, const PlanTotals& totals, double step_seconds);
/// By their ranks.
[[nodiscard]] bool is_better(const Plan& plan, const Plan& than, const Host& host);
/// What the host lacks, in words; empty where it holds the plan.
[[nodiscard]] std::vector<std::string> host_remarks(const Host& host, const PlanTotals& totals);

/// `plan`, or, where the host does not hold it, one that it holds: solved within limits of the
/// host's memory as within those of the GPU's, which are lowered by what the arenas lack until they
/// fit, and then shortened as shorten_step does within these. Where none is found, of those that
/// were the best one.
[[nodiscard]] FittedPlan within_host(const Host& host, const SizedStep& step,
                                     const ResidencyProblem& problem, const SolveOptions& options,
                                     const StepTarget& target, FittedPlan plan);

}  // namespace stowage
