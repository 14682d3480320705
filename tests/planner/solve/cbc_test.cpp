// solve() against an exact solver that knows nothing of cuts: bound <= optimum <= plan.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "estimator/memory/sized_step.hpp"
#include "estimator/model/load_model.hpp"
#include "estimator/step/lower.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "planner/assemble/all_gpu_placement.hpp"
#include "planner/solve/solve.hpp"
#include "tests/planner/plan/step_sketch.hpp"
#include "tests/planner/solve/integer_program.hpp"
#include "tests/planner/solve/large_item_problems.hpp"
#include "tests/planner/solve/random_problems.hpp"
#include "tests/support/skip.hpp"
#include "tests/support/small_steps.hpp"
#include "tests/support/source_directory.hpp"

TEST_SUITE_BEGIN("cbc");

namespace stowage {
namespace {

bool without_cbc() {
  if (!cbc_is_here()) testing::skip("the program 'cbc' is not here (Debian: coinor-cbc)");
  return !cbc_is_here();
}

std::vector<Bytes> everywhere(const ResidencyProblem& problem, Bytes budget) {
  return std::vector<Bytes>(problem.operations.size(), budget);
}

struct Meeting {
  double bound = 0, optimum = 0, cost = 0;
};

/// Checks that they are in this order.
Meeting meet(const ResidencyProblem& problem, Bytes budget) {
  const auto optimum = optimum_by_cbc(problem, everywhere(problem, budget));
  REQUIRE(optimum.has_value());
  const auto solution = solve(problem, {.budget = budget, .target_gap = 1e-4});
  REQUIRE(solution.has_value());
  const Meeting meeting{solution->cost_lower_bound_seconds, *optimum,
                        solution->evaluation.cost_seconds};
  CHECK(meeting.bound <= meeting.optimum * (1 + 1e-7));
  CHECK(meeting.optimum <= meeting.cost * (1 + 1e-7));
  return meeting;
}

/// The problem of a shipped model's training step, on a card and a host of round figures.
ResidencyProblem shipped_problem(const std::string& name, std::int64_t batch, bool pinned) {
  const auto source = find_model(name, testing::source_path("/configs/models"));
  REQUIRE(source.has_value());
  const auto model = load_model(source->source, source->options);
  REQUIRE(model.has_value());
  const auto graph = std::make_shared<const StepGraph>(
      lower(*model, {.kernels = KernelSet::stowage, .optimizer = model->optimizer}).value());
  const auto workspaces = rule_workspace_source(8.6);
  Rates rates = round_rates();
  rates.gpu_launch = 5e-6;
  rates.h2d_latency = rates.d2h_latency = 1e-5;
  return make_problem(size_step(graph, batch, *workspaces).value(), rates,
                      {.compute_on_gpu = pinned});
}

}  // namespace

TEST_CASE("the integer program has the optimum that trying every placement finds") {
  if (without_cbc()) return;
  Random random(2718);
  for (int round = 0; round < 30; ++round) {
    CAPTURE(round);
    const ResidencyProblem problem = random_problem(random);
    const Bytes budget = memory_floor(problem).bytes + Bytes(below(random, 14) << 20);
    const auto best = cheapest_within(problem, all_assignments(problem), budget);
    const auto optimum = optimum_by_cbc(problem, everywhere(problem, budget));
    REQUIRE(best.has_value());
    REQUIRE(optimum.has_value());
    CHECK(*optimum == doctest::Approx(*best).epsilon(1e-7));
  }
}

TEST_CASE("random problems: bound <= optimum <= cost, and the cost within 0.1 percent") {
  if (without_cbc()) return;
  RandomProblems random(11);
  double worst = 0;
  for (int round = 0; round < 30; ++round) {
    CAPTURE(round);
    const ResidencyProblem problem = random.problem(12 + round % 9, 10 + round % 7);
    const Bytes floor = memory_floor(problem).bytes;
    const Bytes all = evaluate(problem, all_gpu_placement(problem)).peak;
    const Bytes budget = floor + Bytes((all - floor).count() / 10 * (1 + round % 8));
    const Meeting meeting = meet(problem, budget);
    worst = std::max(worst, meeting.cost / meeting.optimum - 1);
    CHECK(meeting.cost <= 1.001 * meeting.optimum);
  }
  MESSAGE("worst cost above the optimum: ", 100 * worst, " percent");
}

TEST_CASE("a training step's problem: bound <= optimum <= cost, and the cost within 0.1 percent") {
  if (without_cbc()) return;
  for (const char* name : {"mlp", "mnist-cnn", "alexnet"}) {
    for (const bool pinned : {true, false}) {
      const ResidencyProblem problem = shipped_problem(name, 32, pinned);
      const Bytes floor = memory_floor(problem).bytes;
      const Bytes all = evaluate(problem, all_gpu_placement(problem)).peak;
      for (const int percent : {20, 50, 80}) {
        CAPTURE(name);
        CAPTURE(pinned);
        CAPTURE(percent);
        const Meeting meeting = meet(problem, std::max(floor, Bytes(all.count() / 100 * percent)));
        CHECK(meeting.cost <= 1.001 * meeting.optimum);
      }
    }
  }
}

// Items that a relaxation keeps in part: without branching the bound is far below the optimum.
TEST_CASE("large items: bound and cost meet at the optimum") {
  if (without_cbc()) return;
  const auto meets = [](const ResidencyProblem& problem, int percent) {
    const Bytes all = evaluate(problem, all_gpu_placement(problem)).peak;
    const Bytes budget = std::max(memory_floor(problem).bytes, Bytes(all.count() / 100 * percent));
    const Meeting meeting = meet(problem, budget);
    CAPTURE(percent);
    CHECK(meeting.cost <= 1.0001 * meeting.optimum);
    CHECK(meeting.bound >= 0.999 * meeting.optimum);
    return meeting;
  };
  for (const int percent : {10, 50, 80, 95}) {
    SUBCASE("a giant embedding") { meets(giant_embedding({}), percent); }
    SUBCASE("an embedding among many layers") {
      meets(giant_embedding({.layers = 12, .table = 100'000'000}), percent);
    }
    SUBCASE("a U-shape with compute for nothing") { meets(u_shape(5, 256'000'000), percent); }
  }
}

}  // namespace stowage

TEST_SUITE_END();
