#include "planner/problem/host_use.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "estimator/workspace/rule_workspace_source.hpp"
#include "planner/assemble/all_gpu_placement.hpp"
#include "planner/assemble/assemble_plan.hpp"
#include "planner/problem/gpu_budget.hpp"
#include "planner/problem/rates.hpp"
#include "planner/solve/solve.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {
namespace {

/// Bytes by step of one item of 8 bytes, a digit a step: 0 nothing, 8 pageable, P pinned. Devices
/// are a letter a step, "gc".
std::string on_host(std::vector<Touch> touches, bool wraps, const std::string& devices,
                    std::vector<bool> on_gpu, std::vector<bool> resident) {
  ResidencyProblem problem;
  Placement placement;
  for (const char device : devices) {
    problem.operations.push_back({.name = "op", .engines = {{1.0, Bytes()}}});
    placement.device.push_back(device == 'g' ? Device::gpu : Device::cpu);
    placement.engine.push_back(0);
  }
  const bool written =
      std::ranges::any_of(touches, [](const Touch& touch) { return touch.writes; });
  problem.items.push_back({.name = "x",
                           .bytes = Bytes(8),
                           .touches = std::move(touches),
                           .wraps = wraps,
                           .host_at_start = !written});
  REQUIRE(ill_formed(problem) == "");
  placement.on_gpu = {std::move(on_gpu)};
  placement.resident = {std::move(resident)};
  REQUIRE(evaluate(problem, placement).inconsistency == "");
  const HostUse use = host_use(problem, placement);
  std::string text;
  for (std::size_t t = 0; t < use.all.size(); ++t) {
    text += use.pinned[t] > Bytes() ? 'P' : use.all[t] > Bytes() ? '8' : '0';
    CHECK((use.pinned[t] == Bytes() || use.pinned[t] == use.all[t]));
    CHECK((use.all[t] == Bytes() || use.all[t] == Bytes(8)));
  }
  return text;
}

constexpr Touch reads_at(std::int32_t step) { return {step, true, false}; }
constexpr Touch writes_at(std::int32_t step) { return {step, false, true}; }
constexpr Touch changes_at(std::int32_t step) { return {step, true, true}; }

}  // namespace

TEST_CASE("a version lies on the host from when it is made to its last need there") {
  const std::vector<Touch> made_and_read{writes_at(1), reads_at(3), reads_at(5)};
  // Kept on the GPU throughout; dropped behind the write; dropped between the reads.
  CHECK(on_host(made_and_read, false, "ggggggg", {true, true, true}, {true, true}) == "0000000");
  CHECK(on_host(made_and_read, false, "ggggggg", {true, true, true}, {false, true}) == "00PP000");
  CHECK(on_host(made_and_read, false, "ggggggg", {true, true, true}, {true, false}) == "00PPPP0");
  // Read on the CPU: it was downloaded. Made and read there: pageable.
  CHECK(on_host(made_and_read, false, "gggcggg", {true, false, true}, {false, false}) == "00PPPP0");
  CHECK(on_host(made_and_read, false, "gcgcgcg", {false, false, false}, {false, false}) ==
        "0888880");
  // Made there, read on the GPU.
  CHECK(on_host(made_and_read, false, "gcggggg", {false, true, true}, {false, true}) == "0PPP000");
}

TEST_CASE("what lasts beyond the step lies on the host all the time once it is needed there") {
  // A weight that nothing writes: uploaded for each of its reads, or never.
  const std::vector<Touch> weight{reads_at(1), reads_at(3)};
  CHECK(on_host(weight, true, "gggg", {true, true}, {true, true}) == "0000");
  CHECK(on_host(weight, true, "gggg", {true, true}, {false, true}) == "PPPP");
  CHECK(on_host(weight, true, "gcgc", {false, false}, {false, false}) == "8888");
  // State that one operation changes: there where it runs, and over the step's end.
  CHECK(on_host({changes_at(2)}, true, "gggg", {true}, {true}) == "0000");
  CHECK(on_host({changes_at(2)}, true, "gggg", {true}, {false}) == "PPPP");
  CHECK(on_host({changes_at(2)}, true, "ggcg", {false}, {false}) == "8888");
  // A weight that is read, then updated on the CPU: the new one is read in the next step.
  CHECK(on_host({reads_at(0), changes_at(2)}, true, "ggcg", {true, false}, {false, false}) ==
        "PPPP");
  // Updated on the GPU and kept from its first read to the update: the host has the new one only
  // from the update to the next step's first read.
  CHECK(on_host({reads_at(0), changes_at(2)}, true, "gggg", {true, true}, {true, false}) == "P00P");
}

TEST_CASE("an input lies on the host until it is uploaded for the last time") {
  CHECK(on_host({reads_at(1), reads_at(3)}, false, "gggg", {true, true}, {true}) == "PP00");
  CHECK(on_host({reads_at(1), reads_at(3)}, false, "gggg", {true, true}, {false}) == "PPPP");
}

TEST_CASE("temporaries of operations on the CPU are pageable") {
  ResidencyProblem problem;
  problem.operations.resize(2, {.name = "op", .engines = {{}}, .temporaries = Bytes(3)});
  const Placement placement{{Device::gpu, Device::cpu}, {0, 0}, {}, {}};
  const HostUse use = host_use(problem, placement);
  CHECK(use.all == std::vector<Bytes>{Bytes(0), Bytes(3)});
  CHECK(use.pinned == std::vector<Bytes>(2));
}

// The arenas hold copies until they are over, in granules, packed.
TEST_CASE("what is counted of the host is within a tenth of what its arenas hold") {
  Host host;
  host.name = "test";
  host.cpu_flops = 2e11;
  host.memory_bandwidth = 2e10;
  const auto rule = rule_workspace_source(8.6);
  int compared = 0;
  for (const char* name : {"vgg11", "resnet18", "gpt2", "bert-base"}) {
    const ModelGraph model = testing::shipped(name, {});
    const auto step = size_step(
        testing::lowered(model, {.mode = Mode::train, .optimizer = model.optimizer}), 8, *rule);
    REQUIRE(step.has_value());
    for (const bool on_gpu : {true, false}) {
      const ResidencyProblem problem =
          make_problem(*step, make_rates(generic_card(24_GiB), host), {.compute_on_gpu = on_gpu});
      const Plan all = assemble_plan(*step, problem, all_gpu_placement(problem),
                                     {.budget = GpuBudget::unlimited()});
      for (const int percent : {40, 70}) {
        CAPTURE(name);
        CAPTURE(percent);
        const Bytes budget(all.totals.arena_lower_bound.count() / 100 * percent);
        const auto solution = solve(problem, {.budget = budget, .branches = false});
        if (!solution) continue;
        const Plan plan =
            assemble_plan(*step, problem, solution->placement, {.budget = GpuBudget::unlimited()});
        const HostUse use = host_use(problem, solution->placement);
        const auto ratio = [](const std::vector<Bytes>& by_step, Bytes arenas) {
          const auto count = static_cast<double>(std::ranges::max_element(by_step)->count());
          return count / static_cast<double>(arenas.count());
        };
        CHECK(ratio(use.pinned, plan.totals.host_peak) == doctest::Approx(1).epsilon(0.1));
        const Bytes both = plan.totals.host_peak + plan.totals.pageable_peak;
        CHECK(ratio(use.all, both) == doctest::Approx(1).epsilon(0.1));
        ++compared;
      }
    }
  }
  CHECK(compared >= 10);
}

}  // namespace stowage
