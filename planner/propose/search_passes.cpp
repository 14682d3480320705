#include "planner/propose/search_passes.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "planner/propose/fit_host.hpp"
#include "planner/propose/step_plans.hpp"

namespace stowage {

namespace {

/// (value - bound) / value of what the search minimised.
double gap_of(const Plan& plan) {
  if (plan.minimised == Minimised::seconds) {
    return plan.totals.step_gap().value_or(plan.totals.overhead_gap());
  }
  const double moved = static_cast<double>(pcie_bytes(plan).count());
  return moved > 0 ? 1 - static_cast<double>(plan.totals.pcie_lower_bound.count()) / moved : 0;
}

}  // namespace

std::vector<Work> works_of_passes(const ProposalOptions& options) {
  std::vector<Work> works;
  for (std::int64_t factor = 1; factor <= std::max(options.effort, 1); factor *= 2) {
    works.push_back({options.work.units * factor});
  }
  return works;
}

void SearchPasses::take(Result<std::vector<Plan>> made, SearchOutcome outcome) {
  if (is_first()) {
    outcome_.untried = outcome.untried;
  } else {
    std::erase_if(outcome_.untried, [&](const std::string& name) {
      return !std::ranges::binary_search(outcome.untried, name);
    });
  }
  outcome_.cut_short = std::move(outcome.cut_short);
  outcome_.limit = outcome_.limit + outcome.limit;
  outcome_.spent = outcome_.spent + outcome.spent;
  if (is_first() || (!plans_ && made)) {
    plans_ = std::move(made);
  } else if (made) {
    merge(*std::move(made));
  }
  ++passes_;
}

bool SearchPasses::is_better_of_name(const Plan& plan, const Plan& than) const {
  const bool by_bytes = least_pcie_ || plan.minimised == Minimised::bytes;
  if (by_bytes && pcie_bytes(plan) != pcie_bytes(than)) {
    // What the host does not hold is taken only if it is asked for by name.
    const bool holds = host_holds(host_, plan.totals), held = host_holds(host_, than.totals);
    return holds != held ? holds : pcie_bytes(plan) < pcie_bytes(than);
  }
  return is_better(plan, than, host_);
}

void SearchPasses::merge(std::vector<Plan> later) {
  for (Plan& plan : *plans_) {
    const auto same = std::ranges::find(later, plan.name, &Plan::name);
    if (same == later.end()) {
      later.push_back(std::move(plan));
      continue;
    }
    const bool is_alike = !is_better_of_name(*same, plan) && !is_better_of_name(plan, *same);
    const bool is_taken = is_alike ? gap_of(*same) < gap_of(plan) : is_better_of_name(*same, plan);
    if (!is_taken) *same = std::move(plan);
  }
  plans_ = std::move(later);
}

}  // namespace stowage
