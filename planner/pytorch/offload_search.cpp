#include "planner/pytorch/offload_search.hpp"

#include <algorithm>
#include <utility>

#include "planner/propose/step_plans.hpp"
#include "planner/pytorch/saved_moments.hpp"

namespace stowage {

namespace {

// The cut is made again where PyTorch's allocator does not fit, at most so often, and then a few
// times with more memory than was found to fit.
constexpr int most_cuts = 8, cuts_between = 3;
// A cut's memory is lowered by what is missing, and by at least this share of it.
constexpr std::int64_t parts_of_memory = 64;

/// What hooks can do, and nothing else.
constexpr Levers hooks_alone{.operators = false,
                             .activations = false,
                             .saved = true,
                             .optimizer = false,
                             .weights = false,
                             .recompute = false};

class Cuts {
 public:
  Cuts(const PytorchRequest& request, WorkspaceSource& workspaces, const ProposalOptions& options,
       const HookedCase& of, const std::string& name)
      : request_(request),
        workspaces_(workspaces),
        options_(options),
        of_(of),
        name_(name),
        moments_(saved_moments(*of.step.graph)),
        cut_(request.plan) {
    cut_.levers = hooks_alone;
    cut_.batch = WholeBatch(of.step.batch);
  }

  OffloadSearch run() && {
    Bytes memory = request_.plan.available, too_much = memory;
    for (int i = 0; i < most_cuts && memory > Bytes(); ++i) {
      const std::optional<Bytes> missing = attempt(memory);
      if (!missing) break;
      if (*missing <= Bytes()) break;
      too_much = memory;
      memory -= std::max(*missing, Bytes(memory.count() / parts_of_memory));
    }
    for (int i = 0; search_.found && i < cuts_between; ++i) {
      const Bytes between((memory.count() + too_much.count()) / 2);
      if (too_much - memory < Bytes(memory.count() / parts_of_memory)) break;
      const std::optional<Bytes> missing = attempt(between);
      if (!missing) break;
      (*missing <= Bytes() ? memory : too_much) = between;
    }
    return std::move(search_);
  }

 private:
  /// The case is the same for all cuts but for their budgets. False: there is none.
  bool prepare_case(const Planning& planning) {
    if (case_) {
      follow_budget(planning, *case_);
      return true;
    }
    auto made = make_case(planning, of_.step.graph);
    if (!made) return false;
    case_ = *std::move(made);
    return true;
  }

  /// What the step lacks of the card with a cut of so much memory; at most 0: it fits. None: there
  /// is no cut.
  std::optional<Bytes> attempt(Bytes memory) {
    cut_.budget = GpuBudget{memory};
    const Planning planning(cut_, workspaces_, options_);
    if (planning.is_cancelled()) return std::nullopt;
    if (!prepare_case(planning)) return std::nullopt;
    auto plan = cheapest_plan(planning, *case_, name_);
    if (!plan) return std::nullopt;
    if (!search_.bounds) {
      set_pcie_bound(planning, *case_, *plan);
      search_.bounds = plan->totals;
    }
    std::vector<OffloadDecision> decisions = offload_decisions(*plan, moments_);
    auto report = check_hooked(request_, workspaces_, of_, stays_of(decisions));
    if (!report) return std::nullopt;
    if (fits_safely(*report)) {
      search_.found = OffloadSearch::Found{std::move(decisions), *std::move(report)};
      return Bytes();
    }
    const Bytes missing = std::max(Bytes() - report->headroom, Bytes(1));
    if (report->fits) return missing;  // but asks the driver for memory in every step
    const bool is_first = search_.least_missing == Bytes();
    search_.least_missing = is_first ? missing : std::min(search_.least_missing, missing);
    return missing;
  }

  const PytorchRequest& request_;
  WorkspaceSource& workspaces_;
  const ProposalOptions& options_;
  const HookedCase& of_;
  const std::string& name_;
  std::vector<SavedMoment> moments_;
  PlanRequest cut_;  // as the request, with what hooks can do and less memory
  std::optional<StepCase> case_;
  OffloadSearch search_;
};

}  // namespace

OffloadSearch search_offload(const PytorchRequest& request, WorkspaceSource& workspaces,
                             const ProposalOptions& options, const HookedCase& of,
                             const std::string& name) {
  return Cuts(request, workspaces, options, of, name).run();
}

}  // namespace stowage
