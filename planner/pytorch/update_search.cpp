#include "planner/pytorch/update_search.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "planner/pytorch/excess_bytes.hpp"
#include "planner/pytorch/host_parameters.hpp"
#include "planner/pytorch/region_shares.hpp"

namespace stowage {

namespace {

bool can_update_early(const CaseTrials& trials) {
  const auto& updates = trials.whole().updates;
  return updates && !updates->late && !updates->undivided;
}

bool lowers_peak(const CaseTrials& trials, const HookedCase& of, const HookedCase& without) {
  const auto report = trials.judged(of);
  const auto before = trials.judged(without);
  return report && before && report->headroom > before->headroom;
}

/// Whether it fits without saved tensors on the host.
bool try_early_updates(CaseTrials& trials, const std::vector<ModuleRegion>& regions,
                       std::size_t count) {
  const HookedChanges late{.modules = first_of(regions, count)};
  HookedChanges changes = late;
  changes.updates.early = true;
  const auto of = trials.changed(changes);
  if (!of) return false;
  const std::string name = "early-update-" + share_name(count, regions.size());
  if (trials.try_as_it_is(count == 0 ? "early-update" : name, *of)) return true;
  const auto without = trials.changed(late);
  if (!without || !lowers_peak(trials, *of, *without)) return false;
  trials.try_offload(name, *of);
  return false;
}

/// As few parameters' updates on the CPU as do. Precondition: it fits with all of them there.
void try_some_host_updates(CaseTrials& trials, HookedChanges changes, const std::string& ending) {
  const WholeStep& whole = trials.whole();
  if (whole.updates->undivided) return;
  changes.updates = {.early = can_update_early(trials)};
  const auto plain = trials.changed(changes);
  if (!plain || trials.fits_as_it_is(*plain)) return;
  const Bytes excess = excess_bytes(plain->step, trials.request().plan.available);
  const Bytes bound = host_updates_bound(whole.step, *whole.updates, excess);
  const std::vector<ParameterId> parameters = host_parameters(whole.step, *whole.updates);
  const auto moving = [&](std::size_t count) {
    const auto end = parameters.begin() + static_cast<std::ptrdiff_t>(count);
    changes.updates.on_host = UpdateChoice::OnHost::some;
    changes.updates.parameters.assign(parameters.begin(), end);
    return trials.changed(changes);
  };
  std::size_t too_few = 0, enough = parameters.size() + 1;
  while (enough - too_few > 1) {
    const std::size_t count = (too_few + enough) / 2;
    const auto of = moving(count);
    (of && trials.fits_as_it_is(*of) ? enough : too_few) = count;
  }
  if (enough > parameters.size()) return;
  const auto of = moving(enough);
  if (!of) return;
  trials.try_as_it_is(
      fmt::format("cpu-optimizer-{}-of-{}{}", enough, whole.updates->gradients.size(), ending), *of,
      bound);
}

/// Whether it fits without saved tensors on the host.
bool try_host_updates(CaseTrials& trials, const std::vector<ModuleRegion>& again) {
  HookedChanges changes{.modules = again};
  changes.updates = {.on_host = UpdateChoice::OnHost::all, .early = can_update_early(trials)};
  const auto of = trials.changed(changes);
  if (!of) return false;
  const std::string ending = again.empty() ? "" : "-checkpoint";
  if (!trials.fits_as_it_is(*of)) {
    trials.try_offload("cpu-optimizer" + (again.empty() ? "-offload" : ending), *of);
    return false;
  }
  try_some_host_updates(trials, changes, ending);
  return trials.try_as_it_is("cpu-optimizer" + ending, *of);
}

}  // namespace

bool search_early_updates(CaseTrials& trials, const std::vector<ModuleRegion>& regions) {
  if (!can_update_early(trials) || trials.is_cancelled()) return false;
  for (const std::size_t count : shares_of(regions)) {
    if (trials.is_cancelled()) break;
    if (try_early_updates(trials, regions, count) && count == 0) break;
  }
  return true;
}

bool search_host_updates(CaseTrials& trials, const std::vector<ModuleRegion>& regions) {
  if (!trials.whole().updates || trials.is_cancelled()) return false;
  if (!try_host_updates(trials, {}) && !regions.empty()) try_host_updates(trials, regions);
  return true;
}

}  // namespace stowage
