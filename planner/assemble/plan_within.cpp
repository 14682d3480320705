#include "planner/assemble/plan_within.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "estimator/arena/arena.hpp"
#include "planner/assemble/assemble_plan.hpp"
#include "planner/solve/placement_search.hpp"

namespace stowage {
namespace {

constexpr std::size_t most_others = 2;  // of the solver's placements, where its best does not pack
// Nothing ends a packing once it has begun: in a large plan it is kept short, so that Ctrl-C is
// too.
constexpr std::size_t most_nodes_packed_long = 2'000;
constexpr int later_effort = 4;  // of those found within lower limits
constexpr int local_rounds = 7;  // then all steps are allowed less
constexpr int most_rounds = 12;
constexpr int halvings = 3;             // back towards the limits that overflowed
constexpr double close_enough = 0.005;  // of the overhead: no more is looked for

/// How far blocks of the plan's arena reach beyond the budget, at each step.
std::vector<Bytes> overhang(const Plan& plan, Bytes budget) {
  std::vector<Bytes> beyond(plan.nodes.size());
  const auto add = [&](Bytes end, StepRange steps) {
    if (end <= budget) return;
    for (std::int32_t t = steps.begin; t < steps.end; ++t) {
      Bytes& here = beyond[static_cast<std::size_t>(t)];
      here = std::max(here, end - budget);
    }
  };
  for (const Residence& residence : plan.in(gpu_memory)) {
    const Bytes size = round_up(plan.step.bytes(residence.storage), arena_alignment);
    add(residence.offset + size, residence.steps);
  }
  for (std::size_t t = 0; t < plan.nodes.size(); ++t) {
    const PlannedNode& node = plan.nodes[t];
    const Bytes size = round_up(node.workspace, arena_alignment);
    if (size > Bytes()) {
      add(node.workspace_offset + size, StepRange::single(static_cast<std::int32_t>(t)));
    }
  }
  return beyond;
}

using Limits = std::vector<Bytes>;  // by step

/// Where blocks overflowed: less by that, and twice as much at a step that has given before.
Limits lowered(Limits limits, const Plan& plan, Bytes budget) {
  const std::vector<Bytes> beyond = overhang(plan, budget);
  for (std::size_t t = 0; t < limits.size(); ++t) {
    if (beyond[t] == Bytes()) continue;
    limits[t] = budget - std::max(round_up(beyond[t], arena_alignment), 2 * (budget - limits[t]));
  }
  return limits;
}

/// All steps by the excess, a sixty-fourth of the budget at least: what packing wastes need not
/// shrink with the live sum.
Limits lowered_everywhere(const Limits& limits, Bytes excess, Bytes budget) {
  const Bytes given = budget - *std::ranges::min_element(limits);
  return Limits(limits.size(),
                budget - std::max({excess, Bytes(budget.count() / 64), given + excess}));
}

Limits halfway(const Limits& a, const Limits& b) {
  Limits limits;
  for (std::size_t t = 0; t < a.size(); ++t) limits.push_back(Bytes((a[t] + b[t]).count() / 2));
  return limits;
}

class Fitting {
 public:
  Fitting(const SizedStep& step, const ResidencyProblem& objective, const ResidencyProblem& timing,
          const SolveOptions& options)
      : step_(step), objective_(objective), timing_(timing), options_(options) {
    options_.most_others = options.branches ? most_others : 0;
  }

  Result<FittedPlan> run() && {
    auto solution = solve(objective_, options_);
    if (!solution) return tl::unexpected(solution.error());
    best_.solution = *solution;
    const Placement cheapest = solution->placement;
    const bool is_large = step_.graph->nodes.size() > most_nodes_packed_long;
    const bool is_quick = !options_.branches;
    if (!pack(*solution, is_large || is_quick ? later_effort : last_packing_effort)) {
      lower_until_it_packs(is_quick ? 0 : halvings);
    }
    if (!has_plan_) try_to_pack(nothing_resident(objective_), last_packing_effort);
    if (!has_plan_) {
      return failure(fmt::format(
          "the smallest arena found is {}, the budget {}: offsets in {}-byte granules need more "
          "than the {} that are live at once",
          format_bytes(smallest_arena_), format_bytes(options_.budget), arena_alignment.count(),
          format_bytes(memory_floor(objective_).bytes)));
    }
    best_.at_budget = best_.placement == cheapest;
    best_.solves = solves_;
    best_.solution.others.clear();
    return std::move(best_);
  }

 private:
  /// The cheapest of the solution's placements that packs, if it is cheaper than the plan so far.
  /// False: the solution's own does not pack; `overflow_` is what became of it.
  bool pack(const Solution& solution, int effort) {
    if (try_to_pack(solution.placement, effort)) return true;
    for (const Placement& other : solution.others) {
      if (is_cancelled() || out_of_time() || try_to_pack(other, 1)) break;
    }
    return false;
  }

  bool try_to_pack(const Placement& placement, int effort) {
    const double cost = evaluate(objective_, placement).cost_seconds;
    if (has_plan_ && cost >= cost_) return true;  // not wanted
    if (std::ranges::find(overflowing_, placement) != overflowing_.end()) return false;
    AssemblyOptions assembly{.budget = options_.budget, .last_effort = effort};
    if (is_cancelled()) assembly.arena_effort = assembly.last_effort = 0;  // any plan will do
    Plan plan = assemble_plan(step_, timing_, placement, assembly);
    const Bytes arena = plan.totals.arena;
    if (arena > options_.budget) {
      if (overflowing_.empty() || arena < smallest_arena_) smallest_arena_ = arena;
      overflowing_.push_back(placement);
      overflow_ = std::move(plan);
      return false;
    }
    best_.plan = std::move(plan);
    best_.placement = placement;
    cost_ = cost;
    has_plan_ = true;
    return true;
  }

  /// The dearer of two placements is worth another look.
  [[nodiscard]] bool is_close() const {
    const double solved = best_.solution.evaluation.cost_seconds;
    const double overhead = solved - best_.solution.all_gpu_cost_seconds;
    return has_plan_ && cost_ - solved <= std::max(close_enough * overhead, 1e-9 * solved);
  }

  void lower_until_it_packs(int most_halvings) {
    const Limits whole(objective_.operations.size(), options_.budget);
    Limits too_much = whole, limits = whole;  // at the first the arena overflows
    bool packs = false;
    for (int round = 1; !packs && !is_close() && !out_of_time() && round <= most_rounds; ++round) {
      too_much = limits;
      const Bytes excess = overflow_.totals.arena - options_.budget;
      const bool local = round <= local_rounds && !is_cancelled();
      limits = local ? lowered(limits, overflow_, options_.budget)
                     : lowered_everywhere(limits, excess, options_.budget);
      packs = solve_within(limits);
    }
    for (int round = 0; packs && round < most_halvings && !is_close() && !out_of_time(); ++round) {
      const Limits middle = halfway(too_much, limits);
      (solve_within(middle) ? limits : too_much) = middle;
    }
  }

  bool solve_within(const Limits& limits) {
    SolveOptions attempt = options_;
    attempt.limits = limits;
    attempt.branches = false;  // its bound is of no use
    attempt.most_others = 0;
    attempt.time_limit_seconds =
        std::max(options_.time_limit_seconds - seconds(), options_.time_limit_seconds / 10);
    ++solves_;
    const auto solution = solve(objective_, attempt);
    return solution && pack(*solution, later_effort);
  }

  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  /// There is a plan, and a better one may not take longer.
  [[nodiscard]] bool out_of_time() const {
    return has_plan_ && (seconds() >= options_.time_limit_seconds || is_cancelled());
  }
  [[nodiscard]] bool is_cancelled() const { return options_.cancelled && options_.cancelled(); }

  const SizedStep& step_;
  const ResidencyProblem& objective_;
  const ResidencyProblem& timing_;
  SolveOptions options_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  FittedPlan best_;
  double cost_ = 0;
  bool has_plan_ = false;
  int solves_ = 1;
  std::vector<Placement> overflowing_;
  Plan overflow_;  // the last of them
  Bytes smallest_arena_;
};

}  // namespace

Result<FittedPlan> plan_within(const SizedStep& step, const ResidencyProblem& objective,
                               const ResidencyProblem& timing, const SolveOptions& options) {
  return Fitting(step, objective, timing, options).run();
}

}  // namespace stowage
