#include "planner/propose/fit_host.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "planner/assemble/assemble_plan.hpp"

namespace stowage {
namespace {

/// How much dearer what lasts is made to move, and of how many 64ths of the budget the live sum may
/// be, so that it packs at once.
struct Attempt {
  double dearer;
  std::int64_t filled;
};
constexpr Attempt attempts[] = {{1.5, 63}, {3, 62}, {10, 61}, {100, 60}};

bool pins_too_much(const Host& host, const PlanTotals& totals) {
  return host.pinned_limit > Bytes() && totals.host_peak > host.pinned_limit;
}

bool is_too_large(const Host& host, const PlanTotals& totals) {
  return host.memory > Bytes() && totals.host_peak + totals.pageable_peak > host.memory;
}

ResidencyProblem with_dearer_state(ResidencyProblem problem, double factor) {
  for (Item& item : problem.items) {
    if (!item.wraps) continue;
    item.h2d_seconds *= factor;
    item.d2h_seconds *= factor;
  }
  return problem;
}

}  // namespace

bool host_holds(const Host& host, const PlanTotals& totals) {
  return !pins_too_much(host, totals) && !is_too_large(host, totals);
}

Bytes host_memory_for(const PlanTotals& totals) {
  return std::max(2 * totals.host_peak, totals.host_peak + totals.pageable_peak);
}

bool is_better(const Plan& plan, const Plan& than, const Host& host) {
  const auto rank = [&](const Plan& of) {
    const Bytes lacking = host_holds(host, of.totals) ? Bytes() : host_memory_for(of.totals);
    return std::pair(lacking, of.totals.step_seconds);
  };
  return rank(plan) < rank(than);
}

std::vector<std::string> host_remarks(const Host& host, const PlanTotals& totals) {
  std::vector<std::string> remarks;
  if (pins_too_much(host, totals)) {
    remarks.push_back(fmt::format("needs {} of pinned host memory; '{}' allows {}",
                                  format_bytes(totals.host_peak), host.name,
                                  format_bytes(host.pinned_limit)));
  }
  if (is_too_large(host, totals)) {
    remarks.push_back(fmt::format("needs {} of host memory; '{}' has {}",
                                  format_bytes(totals.host_peak + totals.pageable_peak), host.name,
                                  format_bytes(host.memory)));
  }
  return remarks;
}

FittedPlan within_host(const Host& host, const SizedStep& step, const ResidencyProblem& problem,
                       const SolveOptions& options, FittedPlan plan) {
  for (const Attempt& attempt : attempts) {
    if (host_holds(host, plan.plan.totals) || (options.cancelled && options.cancelled())) break;
    SolveOptions less = options;
    less.branches = false;
    less.limits.assign(problem.operations.size(),
                       Bytes(options.budget.count() / 64 * attempt.filled));
    const auto solution = solve(with_dearer_state(problem, attempt.dearer), less);
    if (!solution) continue;
    const auto is_no_better = [&](const Plan& other) {
      return other.totals.arena > options.budget ||
             (!host_holds(host, other.totals) &&
              host_memory_for(other.totals) >= host_memory_for(plan.plan.totals));
    };
    AssemblyOptions assembly{.budget = options.budget, .must_fit = true, .widens = false};
    Plan other = assemble_plan(step, problem, solution->placement, assembly);
    if (is_no_better(other)) continue;
    assembly.widens = true;
    Plan wider = assemble_plan(step, problem, solution->placement, assembly);
    plan.plan = is_no_better(wider) ? std::move(other) : std::move(wider);
    plan.placement = solution->placement;
    plan.at_budget = false;
  }
  return plan;
}

}  // namespace stowage
