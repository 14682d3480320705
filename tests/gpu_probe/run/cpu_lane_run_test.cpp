// Plans whose nodes on the CPU run beside those of the GPU: they leave the same bits as when the
// GPU waits for each, and windows that are too wide are found.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>

#include "gpu_probe/run/executor.hpp"
#include "planner/plan/two_sides.hpp"
#include "tests/gpu_probe/run/random_plan.hpp"
#include "tests/gpu_probe/run/small_models.hpp"
#include "tests/gpu_probe/run/wrapped_backend.hpp"

namespace stowage::test {
namespace {

constexpr PlanShares half_on_the_cpu{.visiting = 0.9, .on_cpu = 0.5, .windows = 1};

int windows_of(const Plan& plan) {
  return static_cast<int>(std::ranges::count_if(
      plan.nodes, [](const PlannedNode& node) { return node.window.length() > 1; }));
}

Plan with_a_waiting_gpu(Plan plan) {
  for (PlannedNode& node : plan.nodes) node.window = {};
  return plan;
}

bool touches(const KernelNode& node, StorageId storage, bool to_write) {
  const auto is_it = [&](const TensorView& view) { return view.storage == storage; };
  return std::ranges::any_of(node.writes, is_it) ||
         (!to_write && std::ranges::any_of(node.reads, is_it));
}

/// Whether the later node must wait for the earlier one.
bool conflict(const KernelNode& a, const KernelNode& b) {
  const auto any = [](const KernelNode& writer, const KernelNode& other) {
    return std::ranges::any_of(
        writer.writes, [&](const TensorView& view) { return touches(other, view.storage, false); });
  };
  return any(a, b) || any(b, a);
}

}  // namespace

TEST_CASE("with the CPU's nodes beside the GPU's every result has the same bits") {
  int windows = 0;
  for (const char* model : {mlp, small_cnn}) {
    const StepGraph graph = step_of(model, sgd_momentum());
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      CAPTURE(seed);
      const Plan plan = random_plan(graph, 2, seed, half_on_the_cpu);
      windows += windows_of(plan);
      const auto backend = host_backend();
      const auto waiting = execute(with_a_waiting_gpu(plan), *backend, {});
      REQUIRE(waiting.has_value());
      REQUIRE(waiting->violations.empty());
      for (const ExecutionOptions& options :
           {ExecutionOptions{}, ExecutionOptions{.timing = {true, true}},
            ExecutionOptions{.padded = true, .timing = {false, true}}}) {
        const auto beside = execute(plan, *backend, options);
        REQUIRE(beside.has_value());
        CHECK(beside->violations == std::vector<std::string>{});
        CHECK(beside->overruns == std::vector<std::string>{});
        CHECK(beside->completed);
        CHECK(beside->gpu_peak == plan.totals.gpu_peak);
        CHECK((beside->results == waiting->results));
      }
    }
  }
  CHECK(windows > 100);
}

TEST_CASE("a window that reaches past a node of the GPU which needs its results is found") {
  const StepGraph graph = step_of(small_cnn, sgd_momentum());
  int changed = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    CAPTURE(seed);
    const Plan plan = random_plan(graph, 2, seed, half_on_the_cpu);
    for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
      if (device_of(plan, plan.nodes[i]) == Device::gpu) continue;
      for (std::size_t j = 0; j < plan.nodes.size(); ++j) {
        if (device_of(plan, plan.nodes[j]) == Device::cpu) continue;
        if (!conflict(graph.nodes[i], graph.nodes[j])) continue;
        Plan wide = plan;
        const auto other = static_cast<std::int32_t>(j);
        StepRange& window = wide.nodes[i].window;
        window = window_of(plan, NodeId::of(i));
        window.begin = std::min(window.begin, other);
        window.end = std::max(window.end, other + 1);
        const auto backend = host_backend();
        const auto done = execute(wide, *backend, {});
        REQUIRE(done.has_value());
        CHECK(!done->violations.empty());
        ++changed;
        break;
      }
    }
  }
  CHECK(changed > 30);
}

TEST_CASE("a node that is issued before what it reads is on the host is found") {
  const StepGraph graph = step_of(mlp, sgd_momentum());
  Plan plan = resident_plan(graph, 2);
  const auto steps = static_cast<std::int32_t>(plan.nodes.size());
  plan.nodes.back().processor = cpu_processor;
  plan.nodes.back().window = {0, steps};
  const auto backend = host_backend();
  const auto done = execute(plan, *backend, {});
  REQUIRE(done.has_value());
  REQUIRE(done->violations.size() == 1);
  CHECK(done->violations.front().find("node '" + graph.nodes.back().name + "' reads") == 0);
  CHECK(done->violations.front().find("whose host copy is not there") != std::string::npos);
}

TEST_CASE("a kernel that fails on the CPU's lane is told where it is waited for") {
  const auto backend = host_backend();
  REQUIRE(backend->allocate({.gpu = 64_B, .host = 64_B}).has_value());
  const Attributes none;
  KernelCall call{.kernel = Kernel::custom_forward, .device = Device::cpu, .attributes = &none};
  const auto failing = backend->run(call);
  REQUIRE(failing.has_value());
  const auto waited = backend->compute_waits_for(std::array{*failing});
  REQUIRE(!waited.has_value());
  CHECK(waited.error().front().message.find("custom") != std::string::npos);
  CHECK(!backend->synchronize().has_value());
  CHECK(!backend->ran(*failing).has_value());
  // A new allocation starts afresh.
  REQUIRE(backend->allocate({.gpu = 64_B, .host = 64_B}).has_value());
  CHECK(backend->synchronize().has_value());
}

}  // namespace stowage::test
