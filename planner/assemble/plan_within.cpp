#include "planner/assemble/plan_within.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "estimator/arena/arena.hpp"
#include "planner/assemble/assemble_plan.hpp"

namespace stowage {
namespace {

constexpr int most_solves = 10;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

Result<FittedPlan> plan_within(const SizedStep& step, const ResidencyProblem& objective,
                               const ResidencyProblem& timing, const SolveOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  FittedPlan fitted;
  SolveOptions attempt = options;
  const Bytes floor = memory_floor(objective).bytes;
  Bytes smallest_arena;
  for (int solves = 0; solves < most_solves; ++solves) {
    auto solution = solve(objective, attempt);
    if (!solution && solves == 0) return tl::unexpected(solution.error());
    if (!solution) break;
    if (solves == 0) fitted.solution = *solution;
    fitted.placement = std::move(solution->placement);
    fitted.plan = assemble_plan(step, timing, fitted.placement, {.budget = options.budget});
    fitted.at_budget = solves == 0;
    if (fitted.plan.totals.arena <= options.budget) return fitted;
    if (solves == 0 || fitted.plan.totals.arena < smallest_arena) {
      smallest_arena = fitted.plan.totals.arena;
    }
    if (attempt.budget <= floor) break;
    // At least a sixty-fourth: the packing's excess need not shrink with the live sum.
    const Bytes excess = fitted.plan.totals.arena - options.budget;
    const Bytes lower = attempt.budget - std::max(excess, Bytes(attempt.budget.count() / 64 + 1));
    attempt.budget = std::max(lower, floor);
    attempt.time_limit_seconds = std::max(options.time_limit_seconds - seconds_since(start),
                                          options.time_limit_seconds / 10);
  }
  return failure(
      fmt::format("the smallest arena found is {}, the budget {}: offsets in {}-byte "
                  "granules need more than the {} that are live at once",
                  format_bytes(smallest_arena), format_bytes(options.budget),
                  arena_alignment.count(), format_bytes(floor)));
}

}  // namespace stowage
