// SearchPasses: the best plans of several passes of a search, each of which had more work than the
// one before. A plan is never given up for one that is worse, so that more effort never finds less.
#pragma once

#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "planner/plan/plan.hpp"
#include "planner/propose/plan_request.hpp"

namespace stowage {

/// The works of the passes, of `options.work` and `options.effort`.
[[nodiscard]] std::vector<Work> works_of_passes(const ProposalOptions& options);

class SearchPasses {
 public:
  /// `host` outlives it.
  SearchPasses(const Host& host, bool least_pcie) : host_(host), least_pcie_(least_pcie) {}

  [[nodiscard]] bool is_first() const { return passes_ == 0; }
  void take(Result<std::vector<Plan>> made, SearchOutcome outcome);

  /// Works added up; untried is what no pass tried, and cut short what the last one did not finish.
  [[nodiscard]] const SearchOutcome& outcome() const { return outcome_; }
  /// The better plan of each name: with fewer bytes over PCIe for "min-pcie" and where these are
  /// minimised, else by host_rank; of two that are as good, the one nearer to its bound. In the
  /// order of the last pass, then those whose names it lacks. Errors: those of the first pass, if
  /// none has a plan.
  [[nodiscard]] Result<std::vector<Plan>> plans() && { return std::move(plans_); }

 private:
  [[nodiscard]] bool is_better_of_name(const Plan& plan, const Plan& than) const;
  void merge(std::vector<Plan> later);

  const Host& host_;
  bool least_pcie_;
  int passes_ = 0;
  Result<std::vector<Plan>> plans_;
  SearchOutcome outcome_;
};

}  // namespace stowage
