// The CPU beside the GPU: the time that windows save, and that no plan with windows has a step
// below the bounds.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "planner/assemble/all_gpu_placement.hpp"
#include "planner/assemble/assemble_plan.hpp"
#include "planner/assemble/item_moves.hpp"
#include "planner/assemble/lane_schedule.hpp"
#include "planner/assemble/node_windows.hpp"
#include "planner/assemble/swap_policies.hpp"
#include "planner/plan/lanes.hpp"
#include "planner/plan/two_sides.hpp"
#include "planner/solve/lane_balance.hpp"
#include "planner/solve/placement_search.hpp"
#include "planner/solve/solve.hpp"
#include "planner/solve/split_bound.hpp"
#include "tests/planner/solve/random_problems.hpp"
#include "tests/support/small_steps.hpp"

namespace stowage {
namespace {

/// Forward, backward and then the updates of `layers` layers; a layer's backward makes its gradient
/// and is the last to read its weight. All times in seconds.
struct Training {
  int layers = 8;
  double kernel = 1, update_on_cpu = 1, copy = 0.5;

  [[nodiscard]] ResidencyProblem problem() const {
    ResidencyProblem problem;
    const auto operation = [&](std::string name, double gpu, double cpu, Pin pin) {
      problem.operations.push_back({std::move(name), {{gpu, 0_B}}, cpu, 0_B, pin});
    };
    for (int i = 0; i < layers; ++i) operation(fmt::format("f{}", i), kernel, 100, Pin::gpu);
    for (int i = layers; i-- > 0;) operation(fmt::format("b{}", i), kernel, 100, Pin::gpu);
    for (int i = 0; i < layers; ++i) {
      operation(fmt::format("u{}", i), 0.01, update_on_cpu, Pin::cpu);
    }
    for (int i = 0; i < layers; ++i) {
      const int forward = i, backward = 2 * layers - 1 - i, update = 2 * layers + i;
      const auto item = [&](std::string name, Bytes bytes, std::vector<Touch> touches,
                            bool persistent) {
        problem.items.push_back(
            {std::move(name), bytes, std::move(touches), persistent, false, copy, copy});
      };
      item(fmt::format("w{}", i), 1_MiB,
           {{forward, true, false}, {backward, true, false}, {update, true, true}}, true);
      item(fmt::format("g{}", i), 1_MiB, {{backward, false, true}, {update, true, false}}, false);
      item(fmt::format("m{}", i), 2_MiB, {{update, true, true}}, true);
    }
    return problem;
  }
};

/// Everything on the GPU except nodes pinned to the CPU.
Plan offloaded(ResidencyProblem& problem) {
  const SizedStep step = step_of(problem);
  return assemble_plan(step, problem, all_gpu_placement(problem), {.budget = 1_GiB});
}

/// The seconds of the step, as planned or with the GPU waiting for each node of the CPU. `beside`:
/// how many nodes ran beside the GPU.
double seconds_with(const ResidencyProblem& problem, const Placement& placement, const Plan& plan,
                    bool waits, int* beside = nullptr) {
  std::vector<double> nodes, transfers;
  for (std::size_t i = 0; i < problem.operations.size(); ++i) {
    const Operation& operation = problem.operations[i];
    const bool on_gpu = placement.device[i] == Device::gpu;
    nodes.push_back(on_gpu
                        ? operation.engines[static_cast<std::size_t>(placement.engine[i])].seconds
                        : operation.cpu_seconds);
  }
  for (const Transfer& transfer : plan.transfers) {
    const auto found = std::ranges::find(problem.storage_of, transfer.storage);
    const Item& item = problem.items[static_cast<std::size_t>(found - problem.storage_of.begin())];
    transfers.push_back(transfer.link == upload_link ? item.h2d_seconds : item.d2h_seconds);
  }
  std::vector<StepRange> windows = cpu_windows(plan);
  for (std::size_t i = 0; i < windows.size(); ++i) {
    if (windows[i].empty()) continue;
    if (beside != nullptr && windows[i].length() > 1) ++*beside;
    if (waits) windows[i] = StepRange::single(static_cast<std::int32_t>(i));
  }
  return simulate_lanes(nodes, plan.transfers, transfers, windows).step_seconds;
}

}  // namespace

TEST_CASE("ZeRO-Offload: updates on the CPU run beside backward, not after it") {
  // 8 s forward, 8 s backward, 8 s of updates; each way 4 s of copies. Weights are uploaded beside
  // forward, but for the first. The last gradient is there after 16.5 s and down after 17; the one
  // before it came down beside the last node, and both updates begin at the boundary behind that.
  ResidencyProblem problem = Training{}.problem();
  const Plan plan = offloaded(problem);
  CHECK(plan.totals.h2d == 8_MiB);
  CHECK(plan.totals.d2h == 8_MiB);
  CHECK(plan.totals.step_seconds == doctest::Approx(0.5 + 16 + 0.5 + 2));
  CHECK(seconds_with(problem, all_gpu_placement(problem), plan, true) ==
        doctest::Approx(0.5 + 16.5 + 8));
  // Issued when the gradient is down, not at the step of the update.
  for (std::int32_t layer = 0; layer < 8; ++layer) {
    const StepRange window = window_of(plan, NodeId{16 + layer});
    CHECK(window.begin == std::min(16 - layer + 1, 16));
    CHECK(window.end == std::max(16 + layer + 1, window.end));
  }
}

TEST_CASE("the step of updates on the CPU is that of the busiest lane, but for its ends") {
  struct Case {
    double kernel, update, copy;
  };
  for (const Case& each : {Case{1, 0.9, 0.2}, Case{1, 4, 0.2}, Case{0.1, 0.1, 1}, Case{2, 3, 1}}) {
    CAPTURE(each.update);
    constexpr int layers = 24;
    ResidencyProblem problem = Training{layers, each.kernel, each.update, each.copy}.problem();
    const Plan plan = offloaded(problem);
    const double compute = layers * each.kernel, copies = layers * each.copy,
                 updates = layers * each.update;
    // Forward beside uploads, then backward beside downloads and updates.
    const double best = std::max(compute, copies) + std::max({compute, copies, updates});
    const double ends = 2 * (each.kernel + each.update + each.copy);
    CHECK(plan.totals.step_seconds >= best);
    CHECK(plan.totals.step_seconds <= (best + ends) * (1 + 1e-9));
    CHECK(plan.totals.step_seconds <=
          seconds_with(problem, all_gpu_placement(problem), plan, true));
  }
}

TEST_CASE("a forward operation on the CPU runs beside one on the GPU that does not depend on it") {
  // A gated layer: up and gate read x, the product reads both.
  ResidencyProblem problem;
  for (const char* name : {"x", "gate", "up", "product"}) {
    problem.operations.push_back({name, {{1.0, 0_B}}, 1.5, 0_B, Pin::gpu});
  }
  problem.operations[1].pin = Pin::cpu;
  const auto made = [](std::int32_t by, std::vector<Touch> touches) {
    touches.insert(touches.begin(), {by, false, true});
    return Item{fmt::format("y{}", by), 1_MiB, std::move(touches), false, false, 0.25, 0.25};
  };
  problem.items = {made(0, {{1, true, false}, {2, true, false}}), made(1, {{3, true, false}}),
                   made(2, {{3, true, false}})};
  const Plan plan = offloaded(problem);
  // x; down 0.25; gate 1.5 beside up; up again 0.25; product.
  CHECK(plan.totals.step_seconds == doctest::Approx(1 + 0.25 + 1.5 + 0.25 + 1));
  CHECK(window_of(plan, NodeId{1}) == StepRange{1, 3});
}

TEST_CASE("an update on the CPU waits for a copy under way that no operation on the GPU reads") {
  // The CPU's two readers may both begin as the step does; what is pinned between them has to come.
  ResidencyProblem problem;
  for (const char* name : {"gpu", "read", "read again", "update"}) {
    problem.operations.push_back({name, {{1.0, 0_B}}, 0.5, 0_B, Pin::cpu});
  }
  problem.operations[0].pin = Pin::gpu;
  problem.items = {{"w", 1_MiB, {{1, true, false}, {2, true, false}, {3, true, true}}, true}};
  problem.items[0].h2d_seconds = problem.items[0].d2h_seconds = 0.75;
  CHECK(make_moves(problem, all_gpu_placement(problem)).uploads.empty());
  problem.items[0].gap_pins = {GapPin::resident, GapPin::free, GapPin::free};
  const Placement placement = all_gpu_placement(problem);
  const ItemMoves moves = make_moves(problem, placement);
  REQUIRE(moves.uploads.size() == 1);
  CopySchedule schedule;
  schedule.uploads = {{0, 1}};
  const std::vector<StepRange> windows = node_windows(problem, placement, moves, schedule);
  CHECK(windows[1].begin == 0);
  CHECK(windows[2].begin == 0);
  CHECK(windows[3].begin == 1);
}

TEST_CASE("no plan of random problems is below a bound, or longer than with a waiting GPU") {
  int compared = 0, tight = 0, beside = 0;
  Random random(29);
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    ResidencyProblem problem = random_problem(random);
    if (round % 3 == 0) {
      for (Operation& operation : problem.operations) operation.pin = Pin::free;
    }
    const Bytes budget = memory_floor(problem).bytes + Bytes(below(random, 6) << 20);
    const SizedStep step = step_of(problem);
    const auto solution = solve(problem, {.budget = budget, .branches = false});
    REQUIRE(solution.has_value());
    const LaneBalance balance = balance_lanes(problem, solution->placement, {.budget = budget});
    const auto at_weights =
        solve(weighted(problem, balance.weights), {.budget = budget, .branches = false});
    REQUIRE(at_weights.has_value());
    const double bound =
        std::max(balance.step_lower_bound_seconds, split_bound(problem, budget).seconds);
    for (const Placement& placement : {solution->placement, at_weights->placement}) {
      const Plan plan = assemble_plan(step, problem, placement, {.budget = budget});
      if (plan.totals.arena > budget) continue;
      ++compared;
      CHECK(bound <= plan.totals.step_seconds * (1 + 1e-6));
      tight += bound > 0.95 * plan.totals.step_seconds ? 1 : 0;
      CHECK(plan.totals.step_seconds <= seconds_with(problem, placement, plan, true, &beside));
    }
  }
  CHECK(compared > 300);
  CHECK(tight > 20);
  CHECK(beside > 200);
}

}  // namespace stowage
