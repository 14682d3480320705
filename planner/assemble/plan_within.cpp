#include "planner/assemble/plan_within.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <queue>
#include <utility>

#include "estimator/base/parallel.hpp"
#include "planner/assemble/arena_claims.hpp"
#include "planner/assemble/assemble_plan.hpp"
#include "planner/assemble/fit_schedule.hpp"
#include "planner/assemble/fitting_effort.hpp"
#include "planner/assemble/fitting_node.hpp"
#include "planner/assemble/lower_limits.hpp"
#include "planner/assemble/pack_by_eviction.hpp"
#include "planner/assemble/spare_workspaces.hpp"
#include "planner/solve/placement_search.hpp"

namespace stowage {
namespace {

constexpr int packing_effort = 6;       // of the best placement
constexpr int later_effort = 3;         // of those found within lower limits
constexpr double close_enough = 0.005;  // of the overhead: no more is looked for
constexpr int most_tightenings = 7;     // with limits of single steps; then all are allowed less
constexpr int most_rounds = 8;          // with all steps allowed less
constexpr int quick_rounds = 2;         // of those before anything else, where little is tried
constexpr int halvings = 3;             // back towards the limits that overflowed
constexpr double much_lost = 0.01;      // of the overhead: then placements are packed by eviction
constexpr std::int64_t eviction_work = 400'000'000;  // some half a second

/// The search of plan_within. A placement that did not pack leads to several sets of lower limits
/// (lower_limits.hpp). One of them after another is followed until there is a plan. Then the sets
/// that are left are searched, the cheapest first.
class Fitting {
 public:
  Fitting(const SizedStep& step, const ResidencyProblem& objective, const ResidencyProblem& timing,
          const SolveOptions& options)
      : step_(step),
        objective_(objective),
        timing_(timing),
        options_(options),
        work_(options.work != nullptr ? *options.work : unlimited_),
        effort_(effort_for(step.graph->nodes.size(), !options.branches)) {
    options_.most_others = effort_.others;
    options_.work = &work_;
  }

  Result<FittedPlan> run() && {
    auto solution = solve(objective_, options_);
    if (!solution) return tl::unexpected(solution.error());
    best_.solution = *solution;
    if (const auto overflow = try_to_pack(solution->placement, packing_effort)) {
      fit(*solution, *overflow);
    }
    if (!has_plan_) try_to_pack(nothing_resident(objective_), last_packing_effort);
    if (!has_plan_) {
      return failure(fmt::format(
          "the smallest arena found is {}, the budget {}: offsets in {}-byte granules need more "
          "than the {} that are live at once",
          format_bytes(smallest_arena_), format_bytes(options_.budget.bytes),
          arena_alignment.count(), format_bytes(memory_floor(objective_).bytes)));
    }
    AssemblyOptions assembly{.budget = options_.budget, .kept = offsets_, .work = &work_};
    if (is_cancelled()) assembly.arena_effort = 0;  // any schedule will do
    best_.plan = assemble_plan(step_, timing_, best_.placement, assembly);
    best_.at_budget = cost_ <= solution->evaluation.cost_seconds;
    best_.solves = solves_;
    best_.solution.others.clear();
    return std::move(best_);
  }

 private:
  void fit(const Solution& solution, const Overflow& overflow) {
    for (const Placement& other : solution.others) {
      if (is_over() || !try_to_pack(other, 1)) break;
    }
    const StepLimits whole = options_.budget.step_limits(objective_.operations.size());
    if (effort_.solves == 0) lower_everywhere(whole, quick_rounds);
    if (!is_close()) follow_tightened_limits(whole, overflow);
    if (!has_plan_) lower_everywhere(whole, most_rounds);
    if (limits_of_plan_) raise_limits(*limits_of_plan_);
    search_open_nodes();
    if (limits_of_plan_) branch_within(*limits_of_plan_);
    evict_from_rejected();
  }

  /// As long as the plan costs much more than the solution: uses what is free beside the plan's
  /// blocks, then packs rejected placements by eviction, the cheapest first.
  void evict_from_rejected() {
    if (effort_.evictions > 0 && loses_much()) evict(best_.placement, offsets_);
    std::vector<std::pair<double, const Placement*>> cheapest;
    for (const Rejected& each : rejected_) {
      cheapest.emplace_back(evaluate(objective_, each.tried).cost_seconds, &each.tried);
    }
    std::ranges::stable_sort(cheapest, {}, &std::pair<double, const Placement*>::first);
    for (std::size_t i = 0; i < std::min(cheapest.size(), effort_.evictions); ++i) {
      const auto& [cost, placement] = cheapest[i];
      if (is_over() || (has_plan_ && (!loses_much() || cost >= cost_))) return;
      const PlacedStep placed(step_, timing_, *placement);
      const ArenaPacking packing = pack_arena(kept_claims(placed).requests,
                                              {.effort = 1, .target_peak = options_.budget.bytes});
      work_.spend(work_of_packing(packing));
      evict(*placement, packing.offsets);
    }
  }

  void evict(const Placement& placement, const std::vector<Bytes>& offsets) {
    const bool is_the_plan = &placement == &best_.placement;
    const double cost_limit =
        has_plan_ && !is_the_plan ? cost_ : std::numeric_limits<double>::infinity();
    auto packed = pack_by_eviction({.step = step_,
                                    .problem = objective_,
                                    .placement = placement,
                                    .offsets = offsets,
                                    .budget = options_.budget,
                                    .cost_limit = cost_limit,
                                    .work = eviction_work,
                                    .charged = &work_});
    if (!packed || (has_plan_ && packed->cost_seconds >= cost_)) return;
    take(*std::move(packed));
  }

  /// Follows one set of tightened limits after another. The sets not followed are left for later.
  void follow_tightened_limits(StepLimits limits, Overflow overflow) {
    for (int round = 0; round < most_tightenings && !is_done(); ++round) {
      std::vector<StepLimits> ways = tightened_limits(limits, overflow, options_.budget);
      if (ways.empty()) return;
      // Of the limits against a conflict none is known to be better: all are solved.
      const bool in_conflict = overflow.beyond.empty();
      std::vector<FittingNodePtr> now;
      for (std::size_t i = 0; i < ways.size(); ++i) {
        const FittingNodePtr node = make_node(std::move(ways[i]), limits);
        if (in_conflict || i == 0) {
          now.push_back(node);
        } else {
          open_.push(node);
        }
      }
      std::vector<FittingNodePtr> solved(now.size());
      {
        std::deque<WorkBudget> parts;
        for (std::size_t i = 0; i < now.size(); ++i) parts.emplace_back(work_, left_for_a_solve());
        for_each_index(now.size(),
                       [&](std::size_t i) { solved[i] = solved_within(*now[i], parts[i]); });
        solves_ += static_cast<int>(now.size());
      }
      std::erase(solved, nullptr);
      const FittingNodePtr best = best_way(solved);
      for (const FittingNodePtr& node : solved) {
        if (node != best) open_.push(node);
      }
      if (!best) return;
      auto still = pack(*best);
      if (!still) return;
      limits = best->limits;
      overflow = *std::move(still);
    }
  }

  /// The cheapest node whose placement has no conflict; the cheapest of all if every one has.
  [[nodiscard]] FittingNodePtr best_way(const std::vector<FittingNodePtr>& solved) const {
    FittingNodePtr best;
    std::pair<bool, double> best_rank;
    for (const FittingNodePtr& node : solved) {
      const ArenaBound bound = bound_placement(step_, timing_, *node->placement, options_.budget);
      const std::pair rank(!options_.budget.fits(bound.least_peak), node->cost);
      if (best && best_rank <= rank) continue;
      best = node;
      best_rank = rank;
    }
    return best;
  }

  void lower_everywhere(StepLimits limits, int rounds) {
    for (int round = 0; !has_plan_ && round < rounds; ++round) {
      limits = lowered_everywhere(limits, options_.budget.excess(smallest_arena_), options_.budget);
      if (const FittingNodePtr found = solved_node(*make_node(limits, limits))) (void)pack(*found);
    }
  }

  /// Searches the open nodes, the cheapest first, as long as one may be cheaper than the plan.
  void search_open_nodes() {
    while (!open_.empty() && !is_done()) {
      FittingNodePtr node = open_.top();
      open_.pop();
      if (node->cost >= cost_) return;
      if (node->placement) {
        queue_tightened_limits(*node, pack(*node));
      } else if (solves_ < effort_.solves) {
        node = solved_node(*node);
        if (node) open_.push(node);
      }
    }
  }

  void queue_tightened_limits(const FittingNode& node, const std::optional<Overflow>& overflow) {
    if (!overflow) return;
    for (StepLimits& way : tightened_limits(node.limits, *overflow, options_.budget)) {
      open_.push(make_node(std::move(way), node.limits, node.cost));
    }
  }

  /// Raises the limits that packed, which may be lower than they have to be.
  void raise_limits(const FittingNode& packed) {
    StepLimits limits = packed.limits, too_much = packed.above;
    for (int i = 0; i < halvings && !is_done(); ++i) {
      StepLimits middle = halfway(too_much, limits);
      const FittingNodePtr found = solved_node(*make_node(middle, too_much));
      const bool packs = found && !pack(*found);
      (packs ? limits : too_much) = std::move(middle);
    }
  }

  /// Solves once more with branches within the limits that packed: the solver may find more.
  void branch_within(const FittingNode& packed) {
    if (is_done() || !options_.branches) return;
    const FittingNodePtr found = solved_node(*make_node(packed.limits, packed.above), true);
    if (found) (void)pack(*found);
  }

  FittingNodePtr make_node(StepLimits limits, StepLimits above, double cost = 0) {
    return std::make_shared<const FittingNode>(
        FittingNode{cost, ++numbered_, std::nullopt, std::move(limits), std::move(above)});
  }

  /// Solves within the limits of a node. Null: there is no solution.
  FittingNodePtr solved_node(const FittingNode& node, bool branches = false) {
    WorkBudget part(work_, left_for_a_solve());
    ++solves_;
    return solved_within(node, part, branches);
  }

  /// What is left, or a tenth of all: a solve finds something in that.
  [[nodiscard]] Work left_for_a_solve() const {
    return std::max(work_.left(), 0.1 * work_.limit());
  }

  FittingNodePtr solved_within(const FittingNode& node, WorkBudget& part,
                               bool branches = false) const {
    SolveOptions attempt = options_;
    attempt.limits = node.limits;
    attempt.branches = branches || effort_.branches;
    attempt.most_others = 0;
    attempt.starts = {best_.solution.placement};
    if (has_plan_) attempt.starts.push_back(best_.placement);
    attempt.work = &part;
    auto solution = solve(objective_, attempt);
    if (!solution) return nullptr;
    FittingNode found = node;
    found.cost = solution->evaluation.cost_seconds;
    found.placement = std::move(solution->placement);
    return std::make_shared<const FittingNode>(std::move(found));
  }

  /// Packs the placement of a solved node. None: it packs, or it costs too much.
  std::optional<Overflow> pack(const FittingNode& node) {
    const double before = has_plan_ ? cost_ : node.cost + 1;
    auto overflow = try_to_pack(*node.placement, later_effort);
    if (has_plan_ && cost_ < before) limits_of_plan_ = node;
    return overflow;
  }

  /// Packs a placement, and again with the least workspaces. None: it packs and is the plan, or it
  /// costs no less than the plan.
  std::optional<Overflow> try_to_pack(const Placement& placement, int effort) {
    if (has_plan_ && evaluate(objective_, placement).cost_seconds >= cost_) return std::nullopt;
    for (const Rejected& known : rejected_) {
      if (known.solved == placement) return known.overflow;
    }
    auto overflow = overflow_of(placement, effort);
    if (!overflow) return std::nullopt;
    Placement tried = placement;
    if (auto least = with_least_workspaces(timing_, placement)) {
      overflow = overflow_of(*least, effort);
      if (!overflow) return std::nullopt;
      tried = *std::move(least);
    }
    if (rejected_.empty() || overflow->arena < smallest_arena_) smallest_arena_ = overflow->arena;
    rejected_.push_back({placement, std::move(tried), *overflow});
    return overflow;
  }

  /// Packs a placement. None: it packs and is the plan.
  std::optional<Overflow> overflow_of(const Placement& placement, int effort) {
    const PlacedStep placed(step_, timing_, placement);
    const ArenaClaims kept = kept_claims(placed);
    Evaluation evaluation = evaluate(objective_, placement);
    Overflow overflow{.bound = bound_arena(kept.requests, options_.budget.bytes),
                      .memory = std::move(evaluation.memory)};
    overflow.arena = overflow.bound.least_peak;
    if (!overflow.bound.excess.front().empty()) return overflow;
    const bool is_hopeless = !options_.budget.fits(overflow.arena) || is_cancelled();
    ArenaPacking packing = pack_arena(
        kept.requests, {.effort = is_hopeless ? 0 : effort, .target_peak = options_.budget.bytes});
    overflow.arena = packing.peak;
    work_.spend(work_of_packing(packing));
    if (options_.budget.fits(overflow.arena)) {
      take({placement, std::move(packing.offsets), evaluation.cost_seconds});
      return std::nullopt;
    }
    overflow.beyond = excess_by_step(kept, packing, options_.budget, placed.steps());
    return overflow;
  }

  void take(PackedStep packed) {
    packed = with_preferred_workspaces(step_, timing_, std::move(packed), options_.budget);
    best_.placement = std::move(packed.placement);
    offsets_ = std::move(packed.offsets);
    cost_ = packed.cost_seconds;
    has_plan_ = true;
  }

  struct Rejected {
    Placement solved;  ///< as the solver found it
    Placement tried;   ///< without workspaces that buy no time
    Overflow overflow;
  };

  /// The cost of the plan above the solution's, as a share of the solver's overhead. Precondition:
  /// there is a plan.
  [[nodiscard]] double lost() const {
    const double solved = best_.solution.evaluation.cost_seconds;
    const double overhead = solved - best_.solution.all_gpu_cost_seconds;
    const double more = cost_ - solved;
    return more <= 1e-9 * solved ? 0 : more / std::max(overhead, 1e-9 * solved);
  }
  [[nodiscard]] bool loses_much() const { return has_plan_ && lost() > much_lost; }
  /// Whether the plan costs so little more than the solution that no other is searched for.
  [[nodiscard]] bool is_close() const { return has_plan_ && lost() <= close_enough; }
  [[nodiscard]] bool is_over() const { return work_.is_over(); }
  /// Whether the search may end. Without a plan it goes on.
  [[nodiscard]] bool is_done() const { return has_plan_ && (is_close() || is_over()); }
  [[nodiscard]] bool is_cancelled() const { return work_.is_cancelled(); }

  const SizedStep& step_;
  const ResidencyProblem& objective_;
  const ResidencyProblem& timing_;
  SolveOptions options_;
  WorkBudget unlimited_;
  WorkBudget& work_;
  FittingEffort effort_;
  FittedPlan best_;
  std::vector<Bytes> offsets_;  // of what the placement keeps
  double cost_ = 0;
  bool has_plan_ = false;
  std::optional<FittingNode> limits_of_plan_;  // where the plan was found within lower limits
  int solves_ = 1;
  int numbered_ = 0;
  std::priority_queue<FittingNodePtr, std::vector<FittingNodePtr>, CheapestFirst> open_;
  std::vector<Rejected> rejected_;
  Bytes smallest_arena_;
};

}  // namespace

Result<FittedPlan> plan_within(const SizedStep& step, const ResidencyProblem& objective,
                               const ResidencyProblem& timing, const SolveOptions& options) {
  return Fitting(step, objective, timing, options).run();
}

}  // namespace stowage
