#include "planner/pytorch/case_trials.hpp"

#include <algorithm>
#include <utility>

#include "planner/pytorch/offload_search.hpp"

namespace stowage {

CaseTrials::CaseTrials(const PytorchRequest& request, WorkspaceSource& workspaces,
                       const ProposalOptions& options, WholeStep whole, Bytes missing)
    : asked_(request),
      request_(request),
      workspaces_(workspaces),
      options_(options),
      rates_(make_rates(request.plan.card, request.plan.host, request.plan.measured.get())),
      whole_(std::move(whole)),
      missing_{missing, missing} {}

void CaseTrials::expand_segments() { request_.process.allocator.expandable_segments = true; }

std::optional<HookedCase> CaseTrials::changed(const HookedChanges& changes) const {
  auto of = hooked_case(request_, workspaces_, changes);
  if (!of) return std::nullopt;
  return *std::move(of);
}

std::optional<CheckReport> CaseTrials::judged(const HookedCase& of) const {
  auto report = check_hooked(request_, workspaces_, of, {});
  if (!report) return std::nullopt;
  return *std::move(report);
}

std::optional<CheckReport> CaseTrials::fitting(const HookedCase& of) {
  auto report = judged(of);
  if (!report) return std::nullopt;
  // Where it fits but not safely, it lacks the margin alone.
  if (!report->fits) note_missing(Bytes() - report->headroom, of);
  if (!fits_safely(*report)) return std::nullopt;
  return report;
}

bool CaseTrials::try_as_it_is(const std::string& name, const HookedCase& of, Bytes excess) {
  auto report = fitting(of);
  if (!report) return false;
  keep(name, {.of = of, .excess = excess}, *std::move(report));
  return true;
}

bool CaseTrials::try_offload(const std::string& name, const HookedCase& of, Bytes excess) {
  OffloadSearch search = search_offload(request_, workspaces_, options_, of, name);
  if (!search.found) {
    if (search.least_missing > Bytes()) note_missing(search.least_missing, of);
    return false;
  }
  keep(name, {of, std::move(search.found->decisions), search.bounds, excess},
       std::move(search.found->report));
  return true;
}

void CaseTrials::keep(std::string name, const FittingCase& fitting, CheckReport report) {
  if (request_.process.allocator.expandable_segments &&
      !asked_.process.allocator.expandable_segments) {
    name += "-expandable";
  }
  if (options_.has_plan && proposals_.empty()) options_.has_plan();
  proposals_.push_back(
      described_proposal(request_, rates_, whole_, fitting, std::move(name), std::move(report)));
}

void CaseTrials::note_missing(Bytes missing, const HookedCase& of) {
  missing_.of_all = std::min(missing_.of_all, missing);
  if (changes_training(of)) return;
  missing_.of_unchanged_training = std::min(missing_.of_unchanged_training, missing);
}

}  // namespace stowage
