#include "planner/assemble/plan_within.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "estimator/arena/arena.hpp"
#include "planner/assemble/assemble_plan.hpp"

namespace stowage {
namespace {

constexpr int most_solves = 12;
constexpr int local_rounds = 7;     // then all steps are allowed less
constexpr int packing_effort = 20;  // of a packing that decides

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

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

/// What the next placement may use at each step, after one whose packing overflowed.
class StepLimits {
 public:
  explicit StepLimits(const SolveOptions& options, std::size_t steps)
      : budget_(options.budget), limits_(steps, options.budget) {}

  [[nodiscard]] const std::vector<Bytes>& limits() const { return limits_; }

  /// Where blocks overflowed: less by that, and twice as much at a step that has given before.
  void lower(const Plan& plan) {
    const std::vector<Bytes> beyond = overhang(plan, budget_);
    for (std::size_t t = 0; t < limits_.size(); ++t) {
      if (beyond[t] == Bytes()) continue;
      const Bytes given = budget_ - limits_[t];
      limits_[t] = budget_ - std::max(round_up(beyond[t], arena_alignment), 2 * given);
    }
  }

  /// All steps by the excess, a sixty-fourth of the budget at least: what packing wastes need not
  /// shrink with the live sum.
  void lower_all(Bytes excess) {
    const Bytes least = budget_ - *std::ranges::min_element(limits_);
    const Bytes given = std::max({excess, Bytes(budget_.count() / 64), least + excess});
    std::ranges::fill(limits_, budget_ - given);
  }

 private:
  Bytes budget_;
  std::vector<Bytes> limits_;
};

}  // namespace

Result<FittedPlan> plan_within(const SizedStep& step, const ResidencyProblem& objective,
                               const ResidencyProblem& timing, const SolveOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  FittedPlan fitted;
  SolveOptions attempt = options;
  StepLimits limits(options, objective.operations.size());
  Bytes smallest_arena;
  for (int solves = 1; solves <= most_solves; ++solves) {
    auto solution = solve(objective, attempt);
    if (!solution && solves == 1) return tl::unexpected(solution.error());
    if (!solution) break;
    const bool repeated = solves > 1 && solution->placement == fitted.placement;
    if (solves == 1) fitted.solution = *solution;
    fitted.solves = solves;
    fitted.at_budget = solves == 1;
    if (!repeated) {
      fitted.placement = std::move(solution->placement);
      fitted.plan = assemble_plan(step, timing, fitted.placement,
                                  {.budget = options.budget, .last_effort = packing_effort});
    }
    const Bytes arena = fitted.plan.totals.arena;
    if (arena <= options.budget) return fitted;
    if (solves == 1 || arena < smallest_arena) smallest_arena = arena;
    if (solves <= local_rounds) {
      limits.lower(fitted.plan);
    } else {
      limits.lower_all(arena - options.budget);
    }
    attempt.limits = limits.limits();
    attempt.time_limit_seconds = std::max(options.time_limit_seconds - seconds_since(start),
                                          options.time_limit_seconds / 10);
  }
  return failure(
      fmt::format("the smallest arena found is {}, the budget {}: offsets in {}-byte "
                  "granules need more than the {} that are live at once",
                  format_bytes(smallest_arena), format_bytes(options.budget),
                  arena_alignment.count(), format_bytes(memory_floor(objective).bytes)));
}

}  // namespace stowage
