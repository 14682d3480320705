#include "planner/assemble/shorten_step.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "planner/assemble/assemble_plan.hpp"
#include "planner/assemble/copy_windows.hpp"
#include "planner/assemble/fit_schedule.hpp"
#include "planner/assemble/mixed_placement.hpp"
#include "planner/assemble/swap_policies.hpp"

namespace stowage {
namespace {

// An assembly takes milliseconds for a hundred nodes and seconds for ten thousand: so many nodes
// are assembled in all, and placements are not assembled for a shorter step alone where that is not
// two whole steps.
constexpr std::size_t most_assembled_nodes = 40'000;
constexpr std::int64_t mixed_filled = 62;  // of 64 parts of the budget, of two that are mixed
constexpr double proposing_share = 0.6;    // of the time; the rest is for assembling
constexpr double short_enough = 1.01;      // times the bound, or the step without a limit on memory

/// What is solved instead of the problem itself.
struct Variation {
  double window = 0;         ///< for copies, in times of their own seconds; 0: none
  bool balanced = false;     ///< lanes weighted as the bound on the busiest lane weighs them
  std::int64_t filled = 64;  ///< of 64 parts of the budget
};

constexpr Variation variations[] = {
    {1, false, 64}, {1, true, 64},  {2, true, 64}, {0, true, 62},
    {0, true, 58},  {0, false, 58}, {4, true, 64}, {1, true, 60},
};

/// No lane quite for nothing: of two placements with the same busiest lane, the cheaper one.
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
        best_(std::move(plan)),
        seen_{best_.placement} {}

  FittedPlan run() && {
    if (left_ < 2) return std::move(best_);
    propose();
    is_proposing_ = false;
    assemble_candidates();
    return std::move(best_);
  }

 private:
  /// Looked at, and not assembled yet.
  struct Candidate {
    double seconds = 0;  ///< of its step, if whatever is in flight packs
    Placement placement;
  };

  void propose() {
    for (const SwapPolicy policy : swap_policies) {
      if (target_.most_variations < all_variations || is_over()) break;
      if (auto placement = placed_by(policy, step_, problem_, options_.budget)) {
        take(*std::move(placement));
      }
    }
    for (const Variation& variation :
         std::span(variations).first(std::min(target_.most_variations, std::size(variations)))) {
      if (is_short() || is_over()) break;
      attempt(variation);
    }
    if (target_.most_variations >= all_variations && !is_short() && !is_over()) attempt_mixtures();
  }

  /// The most promising first, for as long as one may be shorter than the best.
  void assemble_candidates() {
    std::ranges::stable_sort(candidates_, {}, &Candidate::seconds);
    for (Candidate& candidate : candidates_) {
      if (is_short() || is_over() || candidate.seconds >= best_step()) return;
      assemble(std::move(candidate.placement));
    }
  }

  [[nodiscard]] double best_step() const { return best_.plan.totals.step_seconds; }
  [[nodiscard]] bool is_short(double step_seconds) const {
    const double least =
        std::max(target_.balance.step_lower_bound_seconds, target_.all_gpu_seconds);
    return step_seconds <= short_enough * least;
  }
  [[nodiscard]] bool is_short() const { return is_short(best_step()); }
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  [[nodiscard]] bool is_over() const {
    const double limit = options_.time_limit_seconds * (is_proposing_ ? proposing_share : 1);
    return left_ == 0 || (options_.cancelled && options_.cancelled()) || seconds() > limit;
  }

  void attempt(const Variation& variation) {
    SolveOptions options = options_;
    options.branches = false;
    options.most_others = 0;
    const Bytes limit(options.budget.count() / 64 * variation.filled);
    if (variation.filled < 64) options.limits.assign(problem_.operations.size(), limit);
    options.time_limit_seconds = std::max(options_.time_limit_seconds - seconds(), 0.1);
    const LaneWeights weights =
        variation.balanced ? with_all_lanes(target_.balance.weights) : LaneWeights{};
    if (variation.window == 0) {
      const auto solution = solve(weighted(problem_, weights), options);
      if (solution) take(solution->placement);
      return;
    }
    WindowedProblem windowed = with_copy_windows(problem_, options.budget, variation.window);
    windowed.problem = weighted(std::move(windowed.problem), weights);
    const auto solution = solve(windowed.problem, options);
    if (solution) take(without_windows(problem_, windowed, solution->placement));
  }

  /// With less on the CPU and with more than the weights that balance the lanes would have.
  [[nodiscard]] std::optional<Placement> with_cpu_at(double price) const {
    SolveOptions options = options_;
    options.branches = false;
    options.most_others = 0;
    // What is streamed needs room to come before it is wanted.
    options.limits.assign(problem_.operations.size(),
                          Bytes(options.budget.count() / 64 * mixed_filled));
    options.time_limit_seconds = std::max(options_.time_limit_seconds - seconds(), 0.1);
    LaneWeights weights = with_all_lanes(target_.balance.weights);
    weights.cpu = std::min(1.0, weights.cpu * price);
    auto solution = solve(weighted(problem_, weights), options);
    if (!solution) return std::nullopt;
    return std::move(solution->placement);
  }

  void attempt_mixtures() {
    const auto few = with_cpu_at(1.25), many = with_cpu_at(0.8);
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
    for (const int parts : {16, 32, 64}) {
      for (const double more : {0.0, -0.1, 0.1}) {
        auto mixed = mixed_placement(problem_, *many, *few, {best_share + more, parts});
        if (mixed) take(*std::move(mixed));
      }
    }
  }

  void take(Placement placement) {
    if (is_over() || std::ranges::find(seen_, placement) != seen_.end()) return;
    // No step is shorter than its busiest lane.
    if (busiest_lane(evaluate(problem_, placement)) >= best_step()) return;
    seen_.push_back(placement);
    const double least =
        widest_step_seconds(PlacedStep(step_, problem_, placement), options_.budget);
    if (least >= best_step()) return;
    // What may end the search is not put off.
    if (is_short(least)) return assemble(std::move(placement));
    candidates_.push_back({least, std::move(placement)});
  }

  void assemble(Placement placement) {
    --left_;
    Plan plan =
        assemble_plan(step_, problem_, placement,
                      {.budget = options_.budget, .must_fit = true, .longest_step = best_step()});
    if (plan.totals.arena > options_.budget || plan.totals.step_seconds >= best_step()) return;
    best_.plan = std::move(plan);
    best_.placement = std::move(placement);
    best_.at_budget = false;
  }

  const SizedStep& step_;
  const ResidencyProblem& problem_;
  const SolveOptions& options_;
  const StepTarget& target_;
  FittedPlan best_;
  std::vector<Placement> seen_;
  std::vector<Candidate> candidates_;
  bool is_proposing_ = true;
  std::size_t left_ = most_assembled_nodes / std::max<std::size_t>(problem_.operations.size(), 1);
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

static_assert(std::size(variations) == all_variations);

}  // namespace

FittedPlan shorten_step(const SizedStep& step, const ResidencyProblem& problem,
                        const SolveOptions& options, const StepTarget& target, FittedPlan plan) {
  return Shortening(step, problem, options, target, std::move(plan)).run();
}

}  // namespace stowage
