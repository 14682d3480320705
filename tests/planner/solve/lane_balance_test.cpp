#include "planner/solve/lane_balance.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "planner/solve/placement_search.hpp"
#include "planner/solve/solve.hpp"
#include "tests/planner/solve/random_problems.hpp"

namespace stowage {
namespace {

/// Every placement that can be made of an assignment's choices, each given to `look`.
template <typename Look>
void each_placement(const ResidencyProblem& problem, const DeviceAssignment& assignment,
                    Placement& placement, std::size_t item, const Look& look) {
  if (item == problem.items.size()) {
    look(placement);
    return;
  }
  for (const ItemChoice& choice : assignment.choices[item]) {
    placement.on_gpu[item] = choice.on_gpu;
    placement.resident[item] = choice.resident;
    each_placement(problem, assignment, placement, item + 1, look);
  }
}

/// The least busiest lane of all placements within the budget, with each operation's engine of the
/// least workspace or the fastest: whichever fits.
double least_busiest_lane(const ResidencyProblem& problem, Bytes budget) {
  double least = std::numeric_limits<double>::infinity();
  for (const DeviceAssignment& assignment : all_assignments(problem)) {
    Placement placement;
    placement.device = assignment.device;
    placement.engine.assign(problem.operations.size(), 0);
    placement.on_gpu.resize(problem.items.size());
    placement.resident.resize(problem.items.size());
    each_placement(problem, assignment, placement, 0, [&](Placement placed) {
      for (std::size_t t = 0; t < problem.operations.size(); ++t) {
        if (placed.device[t] == Device::cpu) continue;
        // The fastest engine that fits: engines are chosen step by step, and for time alone.
        const Evaluation first = evaluate(problem, placed);
        const auto& engines = problem.operations[t].engines;
        const Bytes others =
            first.memory[t] - engines[static_cast<std::size_t>(placed.engine[t])].workspace;
        double fastest = std::numeric_limits<double>::infinity();
        for (std::size_t k = 0; k < engines.size(); ++k) {
          if (others + engines[k].workspace > budget || engines[k].seconds >= fastest) continue;
          fastest = engines[k].seconds;
          placed.engine[t] = static_cast<std::int32_t>(k);
        }
      }
      const Evaluation evaluation = evaluate(problem, placed);
      REQUIRE(evaluation.consistent);
      if (evaluation.peak <= budget) least = std::min(least, busiest_lane(evaluation));
    });
  }
  return least;
}

Placement least_memory(const ResidencyProblem& problem, Bytes budget) {
  return nothing_resident(
      make_cut_model(problem, std::vector<Bytes>(problem.operations.size(), budget)));
}

}  // namespace

TEST_CASE("no placement within the budget has a busiest lane below the bound") {
  Random random(11);
  int tight = 0, overlapping = 0;
  for (int round = 0; round < 60; ++round) {
    CAPTURE(round);
    const ResidencyProblem problem = random_problem(random);
    const Bytes budget = memory_floor(problem).bytes + Bytes(below(random, 6) << 20);
    const double least = least_busiest_lane(problem, budget);
    const Placement fitting = least_memory(problem, budget);
    const LaneBalance balance =
        balance_lanes(problem, fitting, {.budget = budget, .close_enough = 1e-4});
    CHECK(balance.step_lower_bound_seconds <= least * (1 + 1e-9));
    const LaneWeights& weights = balance.weights;
    CHECK(weights.gpu + weights.cpu + weights.upload + weights.download == doctest::Approx(1));
    tight += balance.step_lower_bound_seconds > 0.999 * least ? 1 : 0;
    const auto cheapest = solve(problem, {.budget = budget});
    REQUIRE(cheapest.has_value());
    // The bound on the sum is not one on the step.
    CHECK(balance.step_lower_bound_seconds <= busiest_lane(cheapest->evaluation) * (1 + 1e-9));
    overlapping += balance.step_lower_bound_seconds < cheapest->cost_lower_bound_seconds ? 1 : 0;
  }
  CHECK(tight > 20);
  CHECK(overlapping > 20);
}

TEST_CASE(
    "the bound at the weights found is that of the weighted problem, and no lane's is above") {
  Random random(12);
  for (int round = 0; round < 40; ++round) {
    const ResidencyProblem problem = random_problem(random);
    const Bytes budget = memory_floor(problem).bytes + Bytes(below(random, 6) << 20);
    const LaneBalance balance =
        balance_lanes(problem, least_memory(problem, budget), {.budget = budget});
    const auto at_weights = solve(weighted(problem, balance.weights), {.budget = budget});
    REQUIRE(at_weights.has_value());
    CHECK(balance.step_lower_bound_seconds <=
          at_weights->evaluation.cost_seconds * (1 + 1e-9) + 1e-12);
    for (const LaneWeights& one : {LaneWeights{1, 0, 0, 0}, LaneWeights{0, 1, 0, 0},
                                   LaneWeights{0, 0, 1, 0}, LaneWeights{0, 0, 0, 1}}) {
      const auto unlimited = cheapest_placement(
          [&] {
            CutModel model =
                make_cut_model(problem, std::vector<Bytes>(problem.operations.size(), budget));
            model.weights = one;
            return model;
          }(),
          restrictions_of(problem), {});
      CHECK(unlimited.bound_seconds <= balance.step_lower_bound_seconds + 1e-9);
    }
  }
}

TEST_CASE("cancelling leaves a bound") {
  Random random(13);
  const ResidencyProblem problem = random_problem(random);
  const Bytes budget = memory_floor(problem).bytes;
  WorkBudget cancelled(usual_work, {.cancelled = [] { return true; }, .out_of_time = {}});
  const LaneBalance balance =
      balance_lanes(problem, least_memory(problem, budget), {.budget = budget, .work = &cancelled});
  CHECK(balance.cuts == 1);
  CHECK(balance.step_lower_bound_seconds > 0);
}

}  // namespace stowage
