// The host's memory as a second budget: a limit of pinned memory for storages that copies move, and
// one of all physical memory.
#pragma once

#include <string>
#include <vector>

#include "planner/assemble/shorten_step.hpp"
#include "planner/problem/host.hpp"

namespace stowage {

/// Whether the plan's arenas on the host are within its limits; a limit of 0 is none.
[[nodiscard]] bool host_holds(const Host& host, const PlanTotals& totals);
/// The memory of the smallest host that holds the plan, if half of a host's memory may be pinned.
[[nodiscard]] Bytes host_memory_for(const PlanTotals& totals);
/// The order of plans for a host; the lesser is better. A plan that the host holds is better than
/// one that it does not hold. Of plans that it holds, the one with the shorter step is better; of
/// the others, the one with the smaller product of needed host memory and seconds, so that neither
/// is had at any price.
struct HostRank {
  bool lacks = false;  ///< the host does not hold the plan
  double value = 0;
  auto operator<=>(const HostRank&) const = default;
};
[[nodiscard]] HostRank host_rank(const Host& host, const PlanTotals& totals, double step_seconds);
/// Compares two plans by their ranks.
[[nodiscard]] bool is_better(const Plan& plan, const Plan& than, const Host& host);
/// The memory that the host lacks, in words; empty where it holds the plan.
[[nodiscard]] std::vector<std::string> host_remarks(const Host& host, const PlanTotals& totals);

/// `plan` if the host holds it. Else it is solved within limits of the host's memory as well, which
/// are lowered by what the arenas lack until they fit, and then shortened within these limits as
/// shorten_step does. If no plan fits the host, the best of those found.
[[nodiscard]] FittedPlan within_host(const Host& host, const SizedStep& step,
                                     const ResidencyProblem& problem, const SolveOptions& options,
                                     const StepTarget& target, FittedPlan plan);

}  // namespace stowage
