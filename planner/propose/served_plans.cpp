#include "planner/propose/served_plans.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "estimator/serving/served_round.hpp"
#include "planner/plan/two_sides.hpp"
#include "planner/propose/fit_host.hpp"
#include "planner/propose/proposals.hpp"

namespace stowage {

namespace {

constexpr int most_decode_plans = 6;
// Where the round does not fit, decode's memory is lowered by at least this share of the budget.
constexpr std::int64_t parts_of_budget = 32;
// Prefill reads and writes a cache of the host's as a whole, decode its newest tokens alone. So the
// caches stay on the GPU where decode takes at most so many times as long as without that rule.
constexpr double price_of_caches = 1.05;

// Of two ways the one with the shorter answer is taken: a pass of prefill, and so many of decode.
constexpr double tokens_of_answer = 256;

bool has_home(const Storage& storage) { return storage.persistence == Persistence::persistent; }

Bytes lasting_bytes(const PlanRequest& request) {
  Bytes bytes;
  for (const Storage& storage : request.document.graph->storages) {
    if (has_home(storage)) bytes += Bytes(storage.bytes.at(request.batch.samples));
  }
  return bytes;
}

Bytes largest_weight(const StepGraph& round) {
  Bytes largest;
  for (const Storage& storage : round.storages) {
    const bool is_cache = storage.storage_class == StorageClass::kv_cache;
    if (has_home(storage) && !is_cache) largest = std::max(largest, Bytes(storage.bytes.constant));
  }
  return largest;
}

/// Whether every cache is on the GPU throughout.
bool keeps_caches(const Plan& plan) {
  const std::vector<bool> resident = resident_throughout(plan);
  for (std::size_t i = 0; i < resident.size(); ++i) {
    const bool is_cache = plan.step.graph->storages[i].storage_class == StorageClass::kv_cache;
    if (is_cache && !resident[i]) return false;
  }
  return true;
}

/// By name: what is on the GPU throughout a plan of decode.
std::set<std::string> residents_of(const Plan& decode) {
  std::set<std::string> names;
  const std::vector<bool> resident = resident_throughout(decode);
  for (std::size_t i = 0; i < resident.size(); ++i) {
    if (resident[i]) names.insert(decode.step.graph->storages[i].name);
  }
  return names;
}

/// Those on the GPU in decode's plan, and the rest of what lasts on the host.
StorageHomes homes_of(const std::set<std::string>& residents, const StepGraph& round) {
  StorageHomes homes;
  for (const Storage& storage : round.storages) {
    if (!has_home(storage)) continue;
    std::string_view name = storage.name;
    if (name.starts_with(decode_prefix)) name.remove_prefix(decode_prefix.size());
    const bool on_gpu = residents.contains(std::string(name));
    (on_gpu ? homes.gpu : homes.host).insert(storage.name);
  }
  return homes;
}

/// Those that are not of prefill alone.
std::vector<DevicePin> pins_of_decode(std::vector<DevicePin> pins) {
  std::erase_if(pins, [](const DevicePin& pin) { return pin.pattern.starts_with(prefill_prefix); });
  for (DevicePin& pin : pins) {
    if (pin.pattern.starts_with(decode_prefix)) pin.pattern.erase(0, decode_prefix.size());
  }
  return pins;
}

class ServedSearch {
 public:
  ServedSearch(const PlanRequest& round, const StepDocument& decode, WorkspaceSource& workspaces,
               const ProposalOptions& options)
      : round_(round),
        decode_(round),
        workspaces_(workspaces),
        options_(options),
        decode_options_(options) {
    decode_.document = decode;
    decode_.pins.pins = pins_of_decode(round.pins.pins);
    decode_options_.has_plan = {};
    decode_options_.ended = {};
  }

  ServedPlans run() && {
    const auto whole = least_whole_arena(round_, workspaces_);
    if (!whole) return {tl::unexpected(whole.error()), std::nullopt};
    const auto alone = least_whole_arena(decode_, workspaces_);
    if (!alone) return {tl::unexpected(alone.error()), std::nullopt};
    if (round_.budget.fits(*whole)) {
      ServedPlans everything = plans_of_round({});
      if (everything.plans) {
        (void)residents_within(round_.budget.bytes);
        everything.decode = decode_plan_;
        return everything;
      }
    }
    // What prefill takes more than decode beside what lasts.
    const Bytes more = (*whole - lasting_bytes(round_)) - (*alone - lasting_bytes(decode_));
    const Bytes most = round_.budget.bytes - std::max(Bytes(), more);
    // Prefill needs room for the weights that it fetches, which decode may run on the CPU.
    const Bytes fetched(2 * largest_weight(*round_.document.graph).count());
    auto found = within(most);
    auto roomier = within(most - fetched);
    if (roomier && (!found || seconds_of(*roomier) < seconds_of(*found))) {
      found = std::move(roomier);
    }
    if (found) return *std::move(found);
    return plans_of_round(homes_of({}, *round_.document.graph));
  }

 private:
  [[nodiscard]] bool is_cancelled() const { return options_.cancelled && options_.cancelled(); }

  /// The plans whose homes are decode's within the budget, or within less if the round does not fit
  /// so; none: it does not fit with anything of decode's on the GPU.
  std::optional<ServedPlans> within(Bytes budget) {
    const Bytes less(round_.budget.bytes.count() / parts_of_budget);
    for (int i = 0; i < most_decode_plans && budget > Bytes() && !is_cancelled(); ++i) {
      const auto residents = residents_within(budget);
      if (!residents || residents->empty()) return std::nullopt;
      ServedPlans found = plans_of_round(homes_of(*residents, *round_.document.graph));
      if (found.plans) {
        found.decode = decode_plan_;
        return found;
      }
      budget -= less;
    }
    return std::nullopt;
  }

  /// Of a pass of prefill and an answer. Precondition: there are plans.
  [[nodiscard]] double seconds_of(const ServedPlans& served) const {
    const Plan& best = *std::ranges::min_element(
        *served.plans, [&](const Plan& a, const Plan& b) { return is_better(a, b, round_.host); });
    return best.totals.step_seconds + (tokens_of_answer - 1) * served.decode->step_seconds;
  }

  /// Without decode's plan.
  [[nodiscard]] ServedPlans plans_of_round(StorageHomes homes) const {
    PlanRequest request = round_;
    request.pins.homes = std::move(homes);
    ServedPlans found;
    ProposalOptions options = options_;
    options.ended = [&](const SearchOutcome& outcome) { found.outcome = outcome; };
    found.plans = make_plans(request, workspaces_, options);
    return found;
  }

  [[nodiscard]] std::optional<Plan> plan_of_decode(const PlanRequest& request) const {
    auto plans = make_plans(request, workspaces_, decode_options_);
    if (!plans || plans->empty()) return std::nullopt;
    return *std::ranges::min_element(
        *plans, [&](const Plan& a, const Plan& b) { return is_better(a, b, round_.host); });
  }

  /// With the caches on the GPU, where that costs decode little.
  [[nodiscard]] std::optional<Plan> best_plan_of_decode() const {
    auto any = plan_of_decode(decode_);
    if (!any || keeps_caches(*any) || is_cancelled()) return any;
    PlanRequest request = decode_;
    request.pins.pins.push_back({.target = PinTarget::storage_class,
                                 .pattern = std::string(to_string(StorageClass::kv_cache)),
                                 .side = PinnedSide::gpu});
    auto with_caches = plan_of_decode(request);
    if (!with_caches) return any;
    // The bound of a plan with a pin is not one of all plans.
    with_caches->totals.step_lower_bound_seconds = any->totals.step_lower_bound_seconds;
    const double most = price_of_caches * any->totals.step_seconds;
    const bool holds = host_holds(round_.host, with_caches->totals);
    return holds && with_caches->totals.step_seconds <= most ? with_caches : any;
  }

  /// What decode by itself keeps on the GPU within the budget; none: it has no plan.
  std::optional<std::set<std::string>> residents_within(Bytes budget) {
    decode_plan_.reset();
    decode_.budget = budget;
    const auto best = best_plan_of_decode();
    if (!best) return std::nullopt;
    decode_plan_ = DecodePlan{.budget = budget,
                              .step_seconds = best->totals.step_seconds,
                              .step_lower_bound_seconds = best->totals.step_lower_bound_seconds};
    return residents_of(*best);
  }

  const PlanRequest& round_;
  PlanRequest decode_;
  WorkspaceSource& workspaces_;
  const ProposalOptions& options_;
  ProposalOptions decode_options_;
  std::optional<DecodePlan> decode_plan_;  // the one whose residents were asked for last
};

}  // namespace

ServedPlans make_served_plans(const PlanRequest& round, const StepDocument& decode,
                              WorkspaceSource& workspaces, const ProposalOptions& options) {
  return ServedSearch(round, decode, workspaces, options).run();
}

}  // namespace stowage
