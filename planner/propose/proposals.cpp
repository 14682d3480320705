#include "planner/propose/proposals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>

#include "estimator/base/parallel.hpp"
#include "planner/assemble/all_gpu_step.hpp"
#include "planner/propose/certify.hpp"
#include "planner/propose/fit_host.hpp"
#include "planner/propose/order_trials.hpp"
#include "planner/propose/rewritten_steps.hpp"
#include "planner/propose/search_passes.hpp"
#include "planner/propose/segment_plans.hpp"
#include "planner/propose/step_plans.hpp"

namespace stowage {
namespace {

// Shares of the work that is left.
constexpr double best_share = 0.5;  // for the trial with by far the best forecast
// For the kinds of rewritings, which are made in parallel.
constexpr double recompute_share = 0.5, early_share = 0.1, order_share = 0.2;
// For the step as it is, and for its fewest bytes, in parallel; and where nothing is rewritten.
constexpr double unrewritten_share = 0.5, fewest_share = 0.25;
constexpr double alone_share = 0.65, fewest_alone_share = 0.3;

/// The plan in the place of `whose`: under its name, of what that search minimised, with its pins.
Plan in_place_of(const Plan& whose, Plan plan) {
  plan.name = whose.name;
  plan.minimised = whose.minimised;
  plan.pinned = whose.pinned;
  return plan;
}

/// The plan of least cost, or `other` if its simulated step, by which plans are ranked, is shorter.
Plan faster(const Plan& cheapest, const Plan& other, const Host& host) {
  if (!is_better(other, cheapest, host)) return cheapest;
  Plan plan = in_place_of(cheapest, other);
  plan.totals.proved_optimal = false;
  return plan;
}

/// The plan of fewest bytes, or the cheapest plan if that computes on the GPU alone and moves fewer
/// bytes. The bound on bytes is that of the solve which minimised them.
Plan fewer_bytes(Plan fewest, const Plan& cheapest) {
  if (computes_on_cpu(cheapest) || pcie_bytes(cheapest) >= pcie_bytes(fewest)) return fewest;
  if (!keeps_as_if_pinned(cheapest.certificate->cost->scope)) return fewest;
  Plan plan = in_place_of(fewest, cheapest);
  plan.totals.pcie_lower_bound = fewest.totals.pcie_lower_bound;
  plan.totals.proved_optimal = plan.totals.pcie_lower_bound == pcie_bytes(plan);
  plan.certificate->transfers = fewest.certificate->transfers;
  return plan;
}

void add_if_better(std::optional<Plan> plan, const Host& host, std::vector<Plan>& plans) {
  if (!plan) return;
  const bool is_best =
      std::ranges::all_of(plans, [&](const Plan& other) { return is_better(*plan, other, host); });
  if (is_best) plans.push_back(*std::move(plan));
}

/// The trial with the best forecast in another order as well; empty: its forecast is no better in
/// another order.
Trials reordered_best(const Planning& planning, const Trials& trials) {
  if (trials.empty() || planning.is_over()) return {};
  const Trial& best = *std::ranges::min_element(trials, {}, &Trial::forecast);
  Trials both = order_trials(planning, best.of);
  std::erase_if(both, [&](const Trial& trial) { return trial.forecast >= best.forecast; });
  for (Trial& trial : both) {
    trial.name = fmt::format("{}-{}", best.name, trial.name);
    std::ranges::copy(best.remarks, std::back_inserter(trial.remarks));
  }
  return both;
}

void append(Trials more, Trials& trials) { std::ranges::move(more, std::back_inserter(trials)); }

/// The rewritings that give the user the same results.
Trials rewritings(const Planning& planning, const StepCase& whole) {
  const bool trains = whole.step.graph->settings.mode == Mode::train;
  const bool recomputes = trains && planning.request.levers.recompute;
  Trials early, recomputed, reordered;
  struct Kind {
    const char* name;
    bool applies;
    WorkBudget part;
    std::function<void(const Planning&)> make;
  };
  Kind kinds[] = {{"recompute", recomputes, planning.work.part(recompute_share),
                   [&](const Planning& part) {
                     recomputed = recompute_trials(part, whole, Effort::full);
                     append(reordered_best(part, recomputed), recomputed);
                   }},
                  {"early-updates", trains, planning.work.part(early_share),
                   [&](const Planning& part) {
                     early = early_updates_trials(part, whole);
                     append(reordered_best(part, early), early);
                   }},
                  {"order", may_be_reordered(whole), planning.work.part(order_share),
                   [&](const Planning& part) { reordered = order_trials(part, whole); }}};
  for_each_index(std::size(kinds), [&](std::size_t i) {
    if (!kinds[i].applies) return;
    if (planning.is_cancelled()) return planning.gaps.add_untried(kinds[i].name);
    kinds[i].make(Planning(planning, kinds[i].part));
  });
  append(std::move(recomputed), early);
  append(std::move(reordered), early);
  return early;
}

/// Whether the forecast of a rewriting is much shorter than that of the step itself, or the host
/// holds it but not the step itself.
bool forecast_much_shorter(const Trials& rewritten, const std::optional<StepForecast>& own) {
  constexpr double by_far = 0.9;
  if (rewritten.empty()) return false;
  const HostRank best = std::ranges::min_element(rewritten, {}, &Trial::forecast)->forecast;
  return !own || best < HostRank{own->rank.lacks, by_far * own->rank.value};
}

/// The plans of the step as it is: all on the GPU, the cheapest, the fewest bytes.
class UnrewrittenPlans {
 public:
  UnrewrittenPlans(const Planning& planning, const StepCase& whole, std::optional<Plan> all_gpu,
                   Plan cheapest, std::optional<FewestBytes> fewest)
      : planning_(planning),
        whole_(whole),
        cheapest_(std::move(cheapest)),
        fewest_(std::move(fewest)) {
    if (all_gpu) all_gpu_ = all_gpu_plan(planning, whole, *std::move(all_gpu), cheapest_);
  }

  [[nodiscard]] const Plan& best() const {
    return all_gpu_ && is_better(*all_gpu_, cheapest_, host()) ? *all_gpu_ : cheapest_;
  }

  std::vector<Plan> plans() && {
    if (planning_.is_over() && !fewest_) {
      set_trivial_pcie_bound(planning_, whole_, cheapest_);
    } else {
      set_pcie_bound(planning_, whole_, cheapest_,
                     fewest_ ? std::optional(fewest_->bound) : std::nullopt);
    }
    std::optional<Plan> fewest_bytes;
    if (fewest_) {
      fewest_bytes = fewer_bytes(min_pcie_plan(*std::move(fewest_), cheapest_), cheapest_);
    }
    Plan fastest = fewest_bytes ? faster(cheapest_, *fewest_bytes, host()) : cheapest_;
    if (all_gpu_) fastest = faster(fastest, *all_gpu_, host());
    std::vector<Plan> plans;
    if (all_gpu_) plans.push_back(*std::move(all_gpu_));
    plans.push_back(std::move(fastest));
    // Without a plan of fewest bytes the updates alone exceed the budget: they have to run on the
    // CPU.
    if (fewest_bytes) plans.push_back(*std::move(fewest_bytes));
    return plans;
  }

 private:
  [[nodiscard]] const Host& host() const { return planning_.request.host; }

  const Planning& planning_;
  const StepCase& whole_;
  Plan cheapest_;
  std::optional<FewestBytes> fewest_;
  std::optional<Plan> all_gpu_;
};

struct Searches {
  Result<Plan> cheapest;
  std::optional<FewestBytes> fewest;
};

/// Searches the plans of the step as it is. If the forecast of a rewriting is much shorter, the
/// trial with the best forecast is searched before them.
Searches search_unrewritten(const Planning& planning, const StepCase& whole, Trials& rewritten) {
  const auto own = rewritten.empty() ? std::nullopt : forecast_step(planning, whole);
  if (forecast_much_shorter(rewritten, own)) {
    Trial& best = *std::ranges::min_element(rewritten, {}, &Trial::forecast);
    best.search = Trial::Search{plan_of(planning, best.of, best.name,
                                        {.share = best_share, .first_candidate = &best.placement})};
  }
  Searches found;
  const bool is_alone = rewritten.empty();
  WorkBudget for_cheapest = planning.work.part(is_alone ? alone_share : unrewritten_share);
  WorkBudget for_fewest = planning.work.part(is_alone ? fewest_alone_share : fewest_share);
  const bool is_over = planning.is_over();
  const std::function<void()> searches[] = {
      [&] {
        found.cheapest =
            cheapest_plan(Planning(planning, for_cheapest), whole, "cheapest",
                          {.share = 1, .first_candidate = own ? &own->placement : nullptr});
      },
      [&] {
        if (is_over) return planning.gaps.add_untried("min-pcie");
        if (auto fewest = fewest_bytes(Planning(planning, for_fewest), whole)) {
          found.fewest = *std::move(fewest);
        }
      }};
  for_each_index(std::size(searches), [&](std::size_t i) { searches[i](); });
  return found;
}

void add_parts(const Planning& planning, const StepCase& whole, std::vector<Plan>& plans) {
  const auto is_over = [&] { return plans.empty() ? planning.is_cancelled() : planning.is_over(); };
  const StepGraph& graph = *whole.step.graph;
  const bool trains = graph.settings.mode == Mode::train;
  if (is_over()) {
    if (!part_counts(planning, whole).empty()) {
      planning.gaps.add_untried(trains ? "micro-batch" : "chunk");
    }
    return;
  }
  const Host& host = planning.request.host;
  const auto best = std::ranges::min_element(
      plans, [&](const Plan& a, const Plan& b) { return is_better(a, b, host); });
  if (auto parts = parts_plan(planning, whole, best == plans.end() ? nullptr : &*best))
    plans.push_back(*std::move(parts));
  if (trains) return;
  if (is_over()) return planning.gaps.add_untried("segments");
  add_if_better(segments_plan(planning, whole), host, plans);
}

/// The plans of one pass. `asked`: the request of `planning`, whose levers a pass may lower.
Result<std::vector<Plan>> make_pass(const Planning& planning, PlanRequest& asked) {
  auto whole = make_case(planning, planning.document.graph);
  if (!whole) return tl::unexpected(whole.error());
  // With homes on the host not everything is on the GPU.
  std::optional<Plan> all_gpu;
  if (asked.pins.homes.host.empty()) all_gpu = fitting_all_gpu(planning, *whole);
  const bool fits = all_gpu.has_value();
  if (fits && asked.levers == Levers{}) {
    asked.levers.operators = false;  // nobody looks for the CPU where the GPU has room
    whole = make_case(planning, planning.document.graph);
    if (!whole) return tl::unexpected(whole.error());
    all_gpu = fitting_all_gpu(planning, *whole);
  }
  const std::function<void()>& has_plan = planning.options.has_plan;
  if (has_plan && asked.budget.fits(memory_floor(whole->placed).bytes)) has_plan();
  Trials rewritten;
  if (!fits) rewritten = rewritings(planning, *whole);
  auto [cheapest, fewest] = search_unrewritten(planning, *whole, rewritten);
  std::optional<UnrewrittenPlans> unrewritten;
  if (cheapest) {
    unrewritten.emplace(planning, *whole, std::move(all_gpu), *cheapest, std::move(fewest));
  }
  std::vector<Plan> better = better_plans(planning, std::move(rewritten), Effort::full,
                                          unrewritten ? &unrewritten->best() : nullptr);
  std::vector<Plan> plans;
  if (unrewritten) plans = std::move(*unrewritten).plans();
  std::ranges::move(better, std::back_inserter(plans));
  if (!cheapest || !fits) add_parts(planning, *whole, plans);
  if (plans.empty()) return tl::unexpected(cheapest.error());
  if (!cheapest) {
    plans.back().remarks.push_back("without rewriting the step there is no plan: " +
                                   cheapest.error().front().message);
  }
  return plans;
}

}  // namespace

Result<Bytes> least_whole_arena(const PlanRequest& request, WorkspaceSource& workspaces) {
  const int parts = request.document.graph->settings.micro_batches;
  const auto micro_batch = micro_batch_of(request.batch, parts);
  if (!micro_batch) return failure("micro-batches cannot share the batch equally");
  const auto step = size_step(request.document.graph, *micro_batch, workspaces);
  if (!step) return tl::unexpected(step.error());
  const ResidencyProblem problem =
      make_problem(*step, make_rates(request.card, request.host, request.measured.get()),
                   {.compute_on_gpu = true, .all_on_gpu = true});
  return all_gpu_step(*step, problem).least_arena;
}

Result<std::vector<Plan>> make_plans(const PlanRequest& request, WorkspaceSource& workspaces,
                                     const ProposalOptions& options) {
  SearchPasses passes(request.host, options.least_pcie);
  for (const Work work : works_of_passes(options)) {
    PlanRequest asked = request;
    const Planning planning(asked, workspaces, options, work);
    if (!passes.is_first() && planning.is_over()) break;
    auto made = make_pass(planning, asked);
    passes.take(std::move(made), planning.gaps.outcome(work, planning.work.spent()));
  }
  if (options.ended) options.ended(passes.outcome());
  return std::move(passes).plans();
}

}  // namespace stowage
