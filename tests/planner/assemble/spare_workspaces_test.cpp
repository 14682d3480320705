// Workspaces that save no time are left out where blocks do not pack, and come back where there is
// a hole for them.
#include "planner/assemble/spare_workspaces.hpp"

#include <doctest/doctest.h>

#include "planner/assemble/all_gpu_placement.hpp"
#include "tests/planner/assemble/misplaced_blocks.hpp"
#include "tests/support/small_steps.hpp"

namespace stowage {
namespace {

/// A block over all three steps and one each over the first two and the last two; the operation in
/// the middle has four engines.
ResidencyProblem three_steps() {
  ResidencyProblem problem;
  for (const char* name : {"first", "middle", "last"}) {
    problem.operations.push_back({name, {{1.0, 0_B}}, 100.0, 0_B, Pin::gpu});
  }
  problem.operations[1].engines = {{1.0, 4_MiB}, {1.0, 2_MiB}, {1.0, 1_MiB}, {1.5, 0_B}};
  const auto item = [&](const char* name, Bytes bytes, std::int32_t from, std::int32_t to) {
    Item made{name, bytes, {{from, false, true}, {to, true, false}}, false};
    made.h2d_seconds = made.d2h_seconds = 1;
    problem.items.push_back(std::move(made));
  };
  item("whole", 3_MiB, 0, 2);
  item("early", 2_MiB, 0, 1);
  item("late", 2_MiB, 1, 2);
  return problem;
}

}  // namespace

TEST_CASE("the least workspace of engines that take no longer") {
  const ResidencyProblem problem = three_steps();
  const Placement placement = all_gpu_placement(problem);
  REQUIRE(placement.engine[1] == 0);
  const auto least = with_least_workspaces(problem, placement);
  REQUIRE(least.has_value());
  CHECK(least->engine == std::vector<std::int32_t>{0, 2, 0});
  CHECK(least->resident == placement.resident);
  CHECK_FALSE(with_least_workspaces(problem, *least).has_value());
  Placement slow = placement;
  slow.engine[1] = 3;  // has none
  CHECK_FALSE(with_least_workspaces(problem, slow).has_value());
  Placement on_cpu = placement;
  on_cpu.device[1] = Device::cpu;
  CHECK_FALSE(with_least_workspaces(problem, on_cpu).has_value());
}

TEST_CASE("a workspace comes back where a hole is wide enough for it") {
  ResidencyProblem problem = three_steps();
  const SizedStep step = step_of(problem);
  const auto least = with_least_workspaces(problem, all_gpu_placement(problem));
  REQUIRE(least.has_value());
  // Stays by item, then the workspace: in the middle [0, 3), [3, 5) and [7, 9) are taken.
  const PackedStep packed{*least, {0_MiB, 3_MiB, 7_MiB, 5_MiB}, 3.0};
  const auto engine_within = [&](Bytes budget) {
    const PackedStep result = with_preferred_workspaces(step, problem, packed, budget);
    CHECK(testing::misplaced_blocks(step, problem, result, budget) == 0);
    CHECK(result.placement.device == packed.placement.device);
    CHECK(result.placement.resident == packed.placement.resident);
    CHECK(result.cost_seconds == packed.cost_seconds);
    return result.placement.engine[1];
  };
  CHECK(engine_within(9_MiB) == 1);   // [5, 7)
  CHECK(engine_within(12_MiB) == 1);  // 3 MiB above the last block
  CHECK(engine_within(13_MiB) == 0);
  problem.operations[1].engines[1].workspace = 3_MiB;
  CHECK(engine_within(9_MiB) == 2);
}

}  // namespace stowage
