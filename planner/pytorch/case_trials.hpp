// CaseTrials: tries changed steps one after the other, and keeps those that fit as proposals.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/propose/plan_request.hpp"
#include "planner/pytorch/described_proposal.hpp"
#include "planner/pytorch/hooked_run.hpp"
#include "planner/pytorch/pytorch_plans.hpp"

namespace stowage {

/// What the best of the tried ones lack.
struct LeastMissing {
  Bytes of_all;
  Bytes of_unchanged_training;  ///< of those that leave the training as it is
};

/// All arguments of the constructor outlive it, `whole` excepted.
class CaseTrials {
 public:
  /// `missing`: what the step lacks as it is.
  CaseTrials(const PytorchRequest& request, WorkspaceSource& workspaces,
             const ProposalOptions& options, WholeStep whole, Bytes missing);

  [[nodiscard]] const PytorchRequest& request() const { return request_; }
  [[nodiscard]] const Rates& rates() const { return rates_; }
  [[nodiscard]] const WholeStep& whole() const { return whole_; }
  [[nodiscard]] const LeastMissing& missing() const { return missing_; }
  [[nodiscard]] const std::vector<PytorchProposal>& proposals() const { return proposals_; }
  [[nodiscard]] std::vector<PytorchProposal>& proposals() { return proposals_; }
  [[nodiscard]] bool is_cancelled() const { return options_.cancelled && options_.cancelled(); }

  /// From now on under expandable segments.
  void expand_segments();

  /// hooked_case(); none: the step cannot be changed so.
  [[nodiscard]] std::optional<HookedCase> changed(const HookedChanges& changes) const;
  /// The step's report with these changes and nothing else; none: it cannot be made.
  [[nodiscard]] std::optional<CheckReport> judged(const HookedCase& of) const;
  [[nodiscard]] bool fits_as_it_is(const HookedCase& of) { return fitting(of).has_value(); }

  /// Keeps it where it fits, and says so. `excess`: FittingCase's.
  bool try_as_it_is(const std::string& name, const HookedCase& of, Bytes excess = Bytes());
  /// With the fewest bytes of saved tensors on the host.
  bool try_offload(const std::string& name, const HookedCase& of, Bytes excess = Bytes());
  void keep(std::string name, const FittingCase& fitting, CheckReport report);

 private:
  /// The report of a case that fits safely; of others notes what they lack.
  [[nodiscard]] std::optional<CheckReport> fitting(const HookedCase& of);
  void note_missing(Bytes missing, const HookedCase& of);

  const PytorchRequest& asked_;
  PytorchRequest request_;  // as asked, then with expandable segments
  WorkspaceSource& workspaces_;
  const ProposalOptions& options_;
  Rates rates_;
  WholeStep whole_;
  LeastMissing missing_;
  std::vector<PytorchProposal> proposals_;
};

}  // namespace stowage
