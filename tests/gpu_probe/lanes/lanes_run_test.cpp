// The backend for lanes, on threads with delays: planned steps must leave the same bits as the
// resident step, and nothing may use memory without having waited for it.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "gpu_probe/lanes/laned_backend.hpp"
#include "gpu_probe/run/executor.hpp"
#include "gpu_probe/run/tolerance.hpp"
#include "gpu_probe/run/validate_run.hpp"
#include "tests/gpu_probe/lanes/plain_kernels.hpp"
#include "tests/gpu_probe/lanes/threaded_device.hpp"
#include "tests/gpu_probe/run/random_plan.hpp"
#include "tests/gpu_probe/run/small_models.hpp"

namespace stowage::test {
namespace {

constexpr std::uint64_t seeds = 20;

std::string failures_in(const RunReport& report) {
  std::string text;
  for (const Check& check : report.checks) {
    if (!check.passed) text += check.name + ": " + check.detail + "\n";
  }
  return text;
}

std::string lines_of(const std::vector<std::string>& texts) {
  std::string lines;
  for (const std::string& text : texts) lines += text + "\n";
  return lines;
}

struct Seen {
  long kernels = 0, copies = 0, waits = 0;
};

/// Runs plans that are drawn at random too: what is copied, what the CPU computes, and when.
Seen run_seeds(const char* model, const LoweringSettings& settings, std::int64_t steps,
               Precision precision = Precision::fp32) {
  const StepGraph graph = step_of(model, settings, precision);
  // Where products are computed in another way, 16-bit results sometimes round differently.
  const bool is_coarse = tested_tolerance() > 0 && precision != Precision::fp32;
  const double tolerance = is_coarse ? gpu_tolerance(graph) : tested_tolerance();
  Seen seen;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    CAPTURE(seed);
    CAPTURE(graph.model);
    const Plan plan = random_plan(graph, 2, seed);
    auto made = threaded_device({.seed = seed, .run = tested_kernels()});
    {
      const auto backend = laned_backend(std::move(made.device), made.run_on_cpu);
      const auto report = run_plan(plan, *backend, {.steps = steps, .tolerance = tolerance});
      REQUIRE(report.has_value());
      CHECK(report->backend == "threads");
      CHECK(failures_in(*report) == "");
      CHECK(report->measured.lanes.step > 0);
    }
    CHECK(lines_of(made.diary->book.races()) == "");
    CHECK(lines_of(made.diary->misuses) == "");
    CHECK(made.diary->blocks == 0);
    seen.kernels += made.diary->kernels;
    seen.copies += made.diary->copies;
    seen.waits += made.diary->waits;
  }
  return seen;
}

}  // namespace

TEST_SUITE("lanes") {
  TEST_CASE("planned steps leave the resident step's bits whatever the lanes' delays") {
    Seen all;
    const auto run = [&](const char* model, const LoweringSettings& settings, std::int64_t steps) {
      const Seen seen = run_seeds(model, settings, steps);
      all.kernels += seen.kernels;
      all.copies += seen.copies;
      all.waits += seen.waits;
    };
    run(mlp, sgd_momentum(), 1);
    run(mlp, adamw(2), 3);
    // The gradient of a key's bias is 0 except for rounding, and AdamW's step follows its sign. So
    // AdamW runs only where products are computed in the same way.
    run(small_gpt2, has_convolutions() ? adamw() : sgd_momentum(), 1);
    if (has_convolutions()) {
      run(small_cnn, sgd_momentum(), 2);
      run(small_resnet, adamw(), 1);
      run(small_unet, sgd_momentum(2), 1);
    }
    CHECK(all.waits > 1000);
    MESSAGE(all.kernels, " kernels, ", all.copies, " copies and ", all.waits, " waits of lanes");
  }

  TEST_CASE("planned steps in 16 bits and in float64 leave the resident step's bits on lanes") {
    LoweringSettings copies = adamw();
    copies.optimizer.master_weights = MasterWeights::weights;
    const Seen mixed = run_seeds(mlp, copies, 2, Precision::mixed_bf16);
    const Seen narrow = run_seeds(mlp, sgd_momentum(2), 1, Precision::fp16);
    const Seen wide = run_seeds(mlp, sgd_momentum(), 1, Precision::fp64);
    CHECK(mixed.copies + narrow.copies + wide.copies > 1000);
  }

  TEST_CASE("times come from the lanes' own events") {
    const StepGraph graph = step_of(mlp, sgd_momentum());
    const Plan plan = random_plan(graph, 2, 3);
    auto made = threaded_device({.seed = 3, .run = tested_kernels()});
    const auto backend = laned_backend(std::move(made.device), made.run_on_cpu);
    const auto done = execute(plan, *backend, {.clean = true, .steps = 3});
    REQUIRE(done.has_value());
    REQUIRE(done->times.size() == 3);
    for (const StepTimes& times : done->times) {
      for (const auto& spans : {times.nodes, times.copies}) {
        for (const TimeSpan& span : spans) {
          CHECK(span.begin >= 0);
          CHECK(span.end >= span.begin);
        }
      }
      // The times of a node on the GPU's lane come after those of the nodes before it.
      double last = 0;
      for (std::size_t i = 0; i < times.nodes.size(); ++i) {
        if (device_of(plan, plan.nodes[i]) == Device::cpu) continue;
        CHECK(times.nodes[i].begin >= last - 1e-5);
        last = times.nodes[i].end;
      }
    }
    CHECK(!backend->ran({-1}).has_value());
    CHECK(!backend->ran({1 << 20}).has_value());
  }
}

}  // namespace stowage::test
