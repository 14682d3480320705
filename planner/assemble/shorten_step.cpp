#include "planner/assemble/shorten_step.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <optional>
#include <span>

#include "estimator/base/parallel.hpp"
#include "planner/assemble/assemble_plan.hpp"
#include "planner/assemble/copy_windows.hpp"
#include "planner/assemble/fit_schedule.hpp"
#include "planner/assemble/mixed_placement.hpp"
#include "planner/assemble/stall_search.hpp"
#include "planner/assemble/swap_policies.hpp"
#include "planner/problem/gpu_budget.hpp"

namespace stowage {
namespace {

// An assembly takes milliseconds for a hundred nodes and seconds for ten thousand. At most so many
// nodes are assembled in all. Where that is less than two whole steps, no placement is assembled
// only for a shorter step.
constexpr std::size_t most_assembled_nodes = 40'000;
constexpr std::int64_t mixed_filled = 62;  // 64ths of the budget for a mixture of two placements
constexpr int most_late = 2;               // assembled although the work is over
constexpr double proposing_share = 0.75;   // of the work; the rest is for assembling
constexpr std::size_t solved_at_once = 2;  // on any machine, so that the same ones are solved
constexpr double short_enough = 1.01;      // times the bound, or the step with unlimited memory

constexpr std::int64_t stall_search_filled[] = {64, 62, 60};  // 64ths of the budget

/// A move takes from half a millisecond for a hundred nodes to some 50 for five thousand.
int moves_for(std::size_t nodes) { return nodes < 1'000 ? 200 : nodes < 3'000 ? 60 : 20; }

/// A variation of the problem that is solved instead of it.
struct Variation {
  double window = 0;         ///< for copies, in times of their own seconds; 0: none
  bool balanced = false;     ///< lanes weighted as the bound on the busiest lane weighs them
  std::int64_t filled = 64;  ///< of 64 parts of the budget
};

constexpr Variation variations[] = {
    {1, false, 64}, {1, true, 64},  {2, true, 64}, {0, true, 62},
    {0, true, 58},  {0, false, 58}, {4, true, 64}, {1, true, 60},
};

/// Gives every lane some weight, so that of two placements with the same busiest lane the cheaper
/// one is found.
LaneWeights with_all_lanes(const LaneWeights& weights) {
  constexpr double share = 0.1;
  const auto mixed = [](double weight) { return (1 - share) * weight + share / 4; };
  return {mixed(weights.gpu), mixed(weights.cpu), mixed(weights.upload), mixed(weights.download)};
}

class Shortening {
 public:
  Shortening(const SizedStep& step, const ResidencyProblem& problem, const SolveOptions& options,
             const StepTarget& target, FittedPlan plan)
      : step_(step),
        problem_(problem),
        options_(options),
        target_(target),
        work_(options.work != nullptr ? *options.work : unlimited_),
        best_(std::move(plan)),
        seen_{best_.placement} {}

  FittedPlan run() && {
    if (left_ < 2) return std::move(best_);
    {
      WorkBudget proposing(work_, proposing_share * work_.left());
      now_ = &proposing;
      propose();
      now_ = &work_;
    }
    assemble_candidates();
    return std::move(best_);
  }

 private:
  /// A placement that was simulated, and not assembled yet.
  struct Candidate {
    double seconds = 0;  ///< of its step, if whatever is in flight packs
    Placement placement;
    bool by_rule = false;
  };

  void propose() {
    if (target_.most_variations >= all_variations) {
      add_candidates(std::size(swap_policies), always, [&](std::size_t i, WorkBudget&) {
        return placed_by(swap_policies[i], step_, problem_, options_.budget);
      });
      for (Candidate& candidate : candidates_) candidate.by_rule = true;
    }
    const std::size_t count = std::min(target_.most_variations, std::size(variations));
    for (std::size_t i = 0; i < count && !is_done() && !is_over(); i += solved_at_once) {
      add_candidates(
          std::min(count - i, solved_at_once), until_done,
          [&](std::size_t k, WorkBudget& part) { return solved_by(variations[i + k], part); });
    }
    if (target_.most_variations < all_variations || is_done() || is_over()) return;
    add_mixtures();
    add_stall_searches();
  }

  /// Adds placements of stall searches, which start from the placement with the shortest simulated
  /// step, at the budget and at less, which is easier to pack.
  void add_stall_searches() {
    const StallSearchOptions options{.budget = options_.budget,
                                     .most_moves = moves_for(problem_.operations.size())};
    add_candidates(std::size(stall_search_filled), always,
                   [&](std::size_t i, WorkBudget& part) -> std::optional<Placement> {
                     StallSearchOptions within = options;
                     within.work = &part;
                     within.budget = options_.budget.sixty_fourths(stall_search_filled[i]);
                     const Placement* start = shortest_start(within.budget, part);
                     if (start == nullptr) return std::nullopt;
                     return reduce_stalls(step_, problem_, *start, within);
                   });
  }

  /// The placement with the shortest simulated step among all that keep within a budget; null: none
  /// does.
  [[nodiscard]] const Placement* shortest_start(GpuBudget budget, WorkBudget& part) const {
    const Placement* best = nullptr;
    double least = std::numeric_limits<double>::infinity();
    const auto look_at = [&](const Placement& placement) {
      if (!budget.fits(evaluate(problem_, placement).peak)) return;
      const PlacedStep placed(step_, problem_, placement);
      part.spend(work_of_schedule(placed));
      const double seconds = widest_step_seconds(placed, budget);
      if (seconds >= least) return;
      least = seconds;
      best = &placement;
    };
    look_at(best_.placement);
    for (const Candidate& candidate : candidates_) look_at(candidate.placement);
    return best;
  }

  /// Assembles candidates by their simulated step, as long as one may be shorter than the best
  /// plan.
  void assemble_candidates() {
    std::ranges::stable_sort(candidates_, {}, &Candidate::seconds);
    int late = 0;
    for (Candidate& candidate : candidates_) {
      if (is_done() || is_cancelled() || candidate.seconds >= best_step()) return;
      if (is_late() && late++ == most_late) return;
      // No plan may have a longer step than a rule's, so these are assembled in any case.
      if (left_ > 0 || candidate.by_rule) assemble(std::move(candidate));
    }
  }

  [[nodiscard]] double best_step() const { return best_.plan.totals.step_seconds; }
  [[nodiscard]] bool is_short_enough(double step_seconds) const {
    return step_seconds <= short_enough * std::max(target_.balance.step_lower_bound_seconds,
                                                   target_.all_gpu_seconds);
  }
  [[nodiscard]] bool is_done() const { return is_short_enough(best_step()); }
  [[nodiscard]] bool is_cancelled() const { return work_.is_cancelled(); }
  [[nodiscard]] bool is_late() const { return now_->is_over(); }
  [[nodiscard]] bool is_over() const { return left_ == 0 || is_late(); }

  enum When : std::uint8_t { always, until_done };  ///< always: even when the work is over
  using MakePlacement = std::function<std::optional<Placement>(std::size_t, WorkBudget&)>;
  /// Adds placements that are made in parallel, with an equal part of the work each, in their
  /// order.
  void add_candidates(std::size_t count, When when, const MakePlacement& placement) {
    std::vector<std::optional<Candidate>> candidates(count);
    {
      std::deque<WorkBudget> parts = equal_parts(*now_, count, 1.0 / static_cast<double>(count));
      for_each_index(count, [&](std::size_t i) {
        if (when == always ? is_cancelled() : is_over()) return;
        if (auto placed = placement(i, parts[i])) {
          candidates[i] = candidate_of(*std::move(placed), parts[i]);
        }
      });
    }
    for (std::optional<Candidate>& candidate : candidates) {
      if (when == until_done && is_done()) return;
      if (candidate) take(*std::move(candidate));
    }
  }

  /// Simulates a placement. None: its busiest lane alone takes longer than the best step.
  [[nodiscard]] std::optional<Candidate> candidate_of(Placement placement, WorkBudget& part) const {
    if (busiest_lane(evaluate(problem_, placement)) >= best_step()) return std::nullopt;
    const PlacedStep placed(step_, problem_, placement);
    part.spend(work_of_schedule(placed));
    const double least = widest_step_seconds(placed, options_.budget);
    return Candidate{least, std::move(placement)};
  }

  [[nodiscard]] std::optional<Placement> solved_by(const Variation& variation,
                                                   WorkBudget& part) const {
    SolveOptions options = options_;
    options.work = &part;
    options.branches = false;
    options.most_others = 0;
    if (variation.filled < 64) {
      const GpuBudget filled = options.budget.sixty_fourths(variation.filled);
      options.limits = filled.step_limits(problem_.operations.size());
    }
    const LaneWeights weights =
        variation.balanced ? with_all_lanes(target_.balance.weights) : LaneWeights{};
    if (variation.window == 0) {
      auto solution = solve(weighted(problem_, weights), options);
      if (!solution) return std::nullopt;
      return std::move(solution->placement);
    }
    WindowedProblem windowed = with_copy_windows(problem_, options.budget, variation.window);
    windowed.problem = weighted(std::move(windowed.problem), weights);
    const auto solution = solve(windowed.problem, options);
    if (!solution) return std::nullopt;
    return without_windows(problem_, windowed, solution->placement);
  }

  /// A placement with more or less on the CPU than the weights that balance the lanes give.
  [[nodiscard]] std::optional<Placement> with_cpu_at(double price, WorkBudget& part) const {
    SolveOptions options = options_;
    options.work = &part;
    options.branches = false;
    options.most_others = 0;
    // Streamed weights need memory before they are used.
    options.limits =
        options.budget.sixty_fourths(mixed_filled).step_limits(problem_.operations.size());
    LaneWeights weights = with_all_lanes(target_.balance.weights);
    weights.cpu = std::min(1.0, weights.cpu * price);
    auto solution = solve(weighted(problem_, weights), options);
    if (!solution) return std::nullopt;
    return std::move(solution->placement);
  }

  void add_mixtures() {
    std::optional<Placement> few, many;
    {
      std::deque<WorkBudget> parts = equal_parts(*now_, 2, 0.5);
      for_each_index(2, [&](std::size_t i) {
        (i == 0 ? few : many) = with_cpu_at(i == 0 ? 1.25 : 0.8, parts[i]);
      });
    }
    if (!few || !many || few->device == many->device) return;
    constexpr int coarse = 32;
    double best_share = 0, least = std::numeric_limits<double>::infinity();
    for (double share = 0.05; share < 1; share += 0.05) {
      const auto mixed = mixed_placement(problem_, *many, *few, {share, coarse});
      if (!mixed) continue;
      const double busiest = busiest_lane(evaluate(problem_, *mixed));
      if (busiest >= least) continue;
      least = busiest;
      best_share = share;
    }
    std::vector<Mixture> mixtures;
    for (const int parts : {16, 32, 64}) {
      for (const double more : {0.0, -0.1, 0.1}) mixtures.push_back({best_share + more, parts});
    }
    add_candidates(mixtures.size(), always, [&](std::size_t i, WorkBudget&) {
      return mixed_placement(problem_, *many, *few, mixtures[i]);
    });
  }

  void take(Candidate candidate) {
    if (candidate.seconds >= best_step()) return;
    if (std::ranges::find(seen_, candidate.placement) != seen_.end()) return;
    seen_.push_back(candidate.placement);
    // A candidate that may end the search is assembled at once.
    if (is_short_enough(candidate.seconds) && left_ > 0) return assemble(std::move(candidate));
    candidates_.push_back(std::move(candidate));
  }

  void assemble(Candidate candidate) {
    if (left_ > 0) --left_;
    Placement& placement = candidate.placement;
    Plan plan = assemble_plan(
        step_, problem_, placement,
        {.budget = options_.budget, .must_fit = true, .longest_step = best_step(), .work = now_});
    if (!options_.budget.fits(plan.totals.arena) || plan.totals.step_seconds >= best_step()) return;
    if (target_.accepts && !target_.accepts(plan.totals)) return;
    best_.plan = std::move(plan);
    best_.placement = std::move(placement);
    best_.at_budget = false;
  }

  const SizedStep& step_;
  const ResidencyProblem& problem_;
  const SolveOptions& options_;
  const StepTarget& target_;
  WorkBudget unlimited_;
  WorkBudget& work_;
  WorkBudget* now_ = &work_;  // proposing: a part of it
  FittedPlan best_;
  std::vector<Placement> seen_;
  std::vector<Candidate> candidates_;
  std::size_t left_ = most_assembled_nodes / std::max<std::size_t>(problem_.operations.size(), 1);
};

static_assert(std::size(variations) == all_variations);

}  // namespace

FittedPlan shorten_step(const SizedStep& step, const ResidencyProblem& problem,
                        const SolveOptions& options, const StepTarget& target, FittedPlan plan) {
  return Shortening(step, problem, options, target, std::move(plan)).run();
}

}  // namespace stowage
