#include "planner/propose/fit_host.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "planner/assemble/assemble_plan.hpp"
#include "planner/problem/host_use.hpp"

namespace stowage {
namespace {

constexpr int most_attempts = 6;
// Fewer than a search at full effort tries: rules and mixtures know nothing of the host.
constexpr std::size_t most_variations = 4;
constexpr int most_passes = 2;
constexpr std::size_t few_operations = 1'000;
constexpr std::int64_t spared_part = 6;
constexpr std::int64_t first_filled = 63, least_filled = 56;  // of 64 parts of the budget

bool pins_too_much(const Host& host, const PlanTotals& totals) {
  return host.pinned_limit > Bytes() && totals.host_peak > host.pinned_limit;
}

bool is_too_large(const Host& host, const PlanTotals& totals) {
  return host.memory > Bytes() && totals.host_peak + totals.pageable_peak > host.memory;
}

Bytes peak_of(const std::vector<Bytes>& by_step) {
  return by_step.empty() ? Bytes() : *std::ranges::max_element(by_step);
}

/// The limits for the solver. The solver counts host memory differently from the arenas, so its
/// limits are those of the host plus the difference that this plan has.
HostLimits limits_for(const Host& host, const HostUse& counted, const PlanTotals& totals) {
  const auto limit = [](Bytes of_host, Bytes count, Bytes arenas) {
    return of_host > Bytes() ? std::max(of_host + (count - arenas), Bytes()) : HostLimits::none;
  };
  return {limit(host.pinned_limit, peak_of(counted.pinned), totals.host_peak),
          limit(host.memory, peak_of(counted.all), totals.host_peak + totals.pageable_peak)};
}

/// The lower of both limits: a limit that a plan exceeded does not rise again.
HostLimits lower(const HostLimits& a, const HostLimits& b) {
  return {std::min(a.pinned, b.pinned), std::min(a.all, b.all)};
}

HostLimits reduced(const HostLimits& limits, Bytes pinned, Bytes all) {
  const auto less = [](Bytes limit, Bytes by) {
    return limit == HostLimits::none ? limit : std::max(limit - by, Bytes());
  };
  return {less(limits.pinned, pinned), less(limits.all, all)};
}

/// Solves within limits of both sides until the host holds a plan.
class HostFitting {
 public:
  HostFitting(const Host& host, const SizedStep& step, const ResidencyProblem& problem,
              const SolveOptions& options, FittedPlan plan)
      : host_(host),
        step_(step),
        problem_(problem),
        options_(options),
        plan_(std::move(plan)),
        limits_(limits_of(plan_.plan, plan_.placement)) {
    options_.branches = false;
    options_.most_others = 0;
    options_.starts = {plan_.placement};
  }

  /// Returns the limits within which the plan was found, if the host holds it.
  std::optional<SolveOptions> run() {
    for (int attempt = 0; attempt < most_attempts && !is_cancelled(); ++attempt) {
      options_.host = limits_;
      options_.limits =
          options_.budget.sixty_fourths(filled_).step_limits(problem_.operations.size());
      const auto solution = solve(problem_, options_);
      if (!solution) return std::nullopt;
      if (!assemble(solution->placement)) {
        if (--filled_ < least_filled) return std::nullopt;
      } else if (host_holds(host_, plan_.plan.totals)) {
        return options_;
      } else if (solution->beyond_host > Bytes()) {
        return std::nullopt;
      }
    }
    return std::nullopt;
  }

  FittedPlan plan() && { return std::move(plan_); }

 private:
  [[nodiscard]] bool is_cancelled() const {
    return options_.work != nullptr && options_.work->is_cancelled();
  }

  [[nodiscard]] HostLimits limits_of(const Plan& plan, const Placement& placement) const {
    return limits_for(host_, host_use(problem_, placement), plan.totals);
  }

  /// Assembles a placement and keeps it if it is better. False: it does not pack.
  bool assemble(const Placement& placement) {
    AssemblyOptions assembly{
        .budget = options_.budget, .must_fit = true, .widens = false, .work = options_.work};
    Plan narrow = assemble_plan(step_, problem_, placement, assembly);
    if (!options_.budget.fits(narrow.totals.arena)) return false;
    assembly.widens = true;
    Plan wide = assemble_plan(step_, problem_, placement, assembly);
    const bool is_wider = options_.budget.fits(wide.totals.arena) && is_better(wide, narrow, host_);
    Plan plan = is_wider ? std::move(wide) : std::move(narrow);
    limits_ = lower(limits_, limits_of(plan, placement));
    if (!is_better(plan, plan_.plan, host_)) return true;
    plan_.plan = std::move(plan);
    plan_.placement = placement;
    plan_.at_budget = false;
    return true;
  }

  const Host& host_;
  const SizedStep& step_;
  const ResidencyProblem& problem_;
  SolveOptions options_;
  FittedPlan plan_;
  HostLimits limits_;
  std::int64_t filled_ = first_filled;
};

}  // namespace

bool host_holds(const Host& host, const PlanTotals& totals) {
  return !pins_too_much(host, totals) && !is_too_large(host, totals);
}

Bytes host_memory_for(const PlanTotals& totals) {
  return std::max(2 * totals.host_peak, totals.host_peak + totals.pageable_peak);
}

HostRank host_rank(const Host& host, const PlanTotals& totals, double step_seconds) {
  if (host_holds(host, totals)) return {false, step_seconds};
  return {true, static_cast<double>(host_memory_for(totals).count()) * step_seconds};
}

bool is_better(const Plan& plan, const Plan& than, const Host& host) {
  const auto rank = [&](const Plan& of) {
    return host_rank(host, of.totals, of.totals.step_seconds);
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
                       const SolveOptions& options, const StepTarget& target, FittedPlan plan) {
  if (host_holds(host, plan.plan.totals)) return plan;
  HostFitting fitting(host, step, problem, options, std::move(plan));
  std::optional<SolveOptions> within = fitting.run();
  FittedPlan fitted = std::move(fitting).plan();
  if (!within) return fitted;
  within->limits = {};
  StepTarget held = target;
  held.most_variations = std::min(held.most_variations, most_variations);
  // A plan with a shorter step may take more of the host than the solver counts. And what is solved
  // with host memory to spare may have the shorter step. So shorten_step runs again within lower
  // limits.
  const bool is_small = problem.operations.size() < few_operations;
  for (int pass = 0; pass < most_passes; ++pass) {
    Bytes pinned, all;  // what the host lacks for a plan with a shorter step
    held.accepts = [&](const PlanTotals& totals) {
      if (host_holds(host, totals)) return true;
      pinned = std::max(pinned, totals.host_peak - host.pinned_limit);
      all = std::max(all, totals.host_peak + totals.pageable_peak - host.memory);
      return false;
    };
    fitted = shorten_step(step, problem, *within, held, std::move(fitted));
    if (pinned == Bytes() && all == Bytes() && !is_small) break;
    const auto spared = [](Bytes limit) {
      return limit == HostLimits::none ? Bytes() : Bytes(limit.count() / spared_part);
    };
    within->host = reduced(within->host, std::max(pinned, spared(within->host.pinned)),
                           std::max(all, spared(within->host.all)));
  }
  return fitted;
}

}  // namespace stowage
