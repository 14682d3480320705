// A placement that does not pack evicts items that are in the way of its blocks.
#include "planner/assemble/pack_by_eviction.hpp"

#include <doctest/doctest.h>

#include <limits>

#include "estimator/arena/arena.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "planner/assemble/arena_claims.hpp"
#include "planner/solve/solve.hpp"
#include "tests/planner/assemble/misplaced_blocks.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

/// resnet18's training in mixed precision: at 60 percent of its memory the solver's placement does
/// not pack by 3.6 percent of the budget.
struct Overflowing {
  SizedStep step;
  ResidencyProblem problem;
  Bytes budget;
  Solution solution;
  ArenaPacking packing;
};

Overflowing resnet18() {
  const auto rule = rule_workspace_source(8.6);
  const ModelGraph model = testing::shipped("resnet18", {.precision = Precision::amp_bf16});
  auto step = size_step(
      testing::lowered(model, {.mode = Mode::train, .optimizer = model.optimizer}), 16, *rule);
  REQUIRE(step.has_value());
  Host host;
  host.name = "test";
  host.cpu_flops = 2e11;
  host.memory_bandwidth = 2e10;
  ResidencyProblem problem = make_problem(*step, make_rates(generic_card(24_GiB), host), {});
  const Bytes budget = 172_MiB;
  auto solution = solve(problem, {.budget = budget});
  REQUIRE(solution.has_value());
  const PlacedStep placed(*step, problem, solution->placement);
  ArenaPacking packing = pack_arena(kept_claims(placed).requests, {.target_peak = budget});
  REQUIRE(packing.peak > budget);
  return {*std::move(step), std::move(problem), budget, *std::move(solution), std::move(packing)};
}

EvictionRequest question(const Overflowing& of) {
  return {.step = of.step,
          .problem = of.problem,
          .placement = of.solution.placement,
          .offsets = of.packing.offsets,
          .budget = of.budget,
          .cost_limit = std::numeric_limits<double>::infinity(),
          .work = 400'000'000};
}

int misplaced(const Overflowing& of, const PackedStep& packed) {
  return testing::misplaced_blocks(of.step, of.problem, packed, of.budget);
}

}  // namespace

TEST_CASE("eviction: what does not pack packs for part of the overhead more") {
  const Overflowing of = resnet18();
  const auto packed = pack_by_eviction(question(of));
  REQUIRE(packed.has_value());
  CHECK(misplaced(of, *packed) == 0);
  const Evaluation evaluation = evaluate(of.problem, packed->placement);
  CHECK(evaluation.inconsistency == "");
  CHECK(evaluation.cost_seconds == packed->cost_seconds);
  CHECK(evaluation.peak <= of.budget);
  const double solved = of.solution.evaluation.cost_seconds;
  const double overhead = solved - of.solution.all_gpu_cost_seconds;
  CHECK(packed->cost_seconds - solved <= 0.3 * overhead);

  SUBCASE("nothing that costs as much as what there is") {
    EvictionRequest cheaper = question(of);
    cheaper.cost_limit = solved;
    CHECK_FALSE(pack_by_eviction(cheaper).has_value());
  }
  SUBCASE("nothing without work") {
    EvictionRequest idle = question(of);
    idle.work = -1;
    CHECK_FALSE(pack_by_eviction(idle).has_value());
  }
  SUBCASE("what packs is only filled") {
    const auto filled = pack_by_eviction({.step = of.step,
                                          .problem = of.problem,
                                          .placement = packed->placement,
                                          .offsets = packed->offsets,
                                          .budget = of.budget,
                                          .cost_limit = std::numeric_limits<double>::infinity(),
                                          .work = 400'000'000});
    REQUIRE(filled.has_value());
    CHECK(misplaced(of, *filled) == 0);
    CHECK(filled->cost_seconds <= packed->cost_seconds);
  }
}

}  // namespace stowage
