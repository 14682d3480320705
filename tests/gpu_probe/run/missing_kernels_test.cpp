// A plan whose kernels do not exist is refused before anything runs.
#include "gpu_probe/run/missing_kernels.hpp"

#include <doctest/doctest.h>

#include "gpu_probe/host/host_backend.hpp"
#include "gpu_probe/run/validate_run.hpp"
#include "tests/gpu_probe/run/random_plan.hpp"
#include "tests/gpu_probe/run/small_models.hpp"

namespace stowage::test {
namespace {

using Texts = std::vector<std::string>;

KernelNode& node_of(StepGraph& graph, Kernel kernel) {
  for (KernelNode& node : graph.nodes) {
    if (node.kernel == kernel) return node;
  }
  FAIL("no node calls ", std::string(to_string(kernel)));
  return graph.nodes.front();
}

}  // namespace

TEST_CASE("both machines have every kernel of these steps") {
  for (const char* model : {mlp, small_cnn, small_gpt2}) {
    const StepGraph graph = step_of(model, adamw());
    const Plan plan = resident_plan(graph, 2);
    CHECK(missing_kernels(plan, KernelDevice::host) == Texts{});
    CHECK(missing_kernels(plan, KernelDevice::cuda) == Texts{});
  }
}

TEST_CASE("a kernel or a type without an implementation is named once, with who calls it") {
  StepGraph graph = step_of(mlp, sgd_momentum());
  for (KernelNode& node : graph.nodes) {
    if (node.kernel == Kernel::linear_forward) node.reads[1].type = DataType::int32;
  }
  node_of(graph, Kernel::gelu_forward).kernel = Kernel::custom_forward;
  const std::string linear = node_of(graph, Kernel::linear_forward).name;
  const std::string custom = node_of(graph, Kernel::custom_forward).name;
  const Plan plan = resident_plan(graph, 2);
  const Texts expected{
      "'" + linear + "' calls linear_forward in int32, which the host kernels do not have",
      "'" + custom +
          "' calls custom_forward in float32, which the host kernels do not have (what it "
          "computes is not stated)"};
  CHECK(missing_kernels(plan, KernelDevice::host) == expected);
  auto backend = open_host_backend();
  REQUIRE(backend.has_value());
  const auto report = run_plan(plan, **backend);
  REQUIRE(!report);
  CHECK(report.error().front().message == expected[0] + "; " + expected[1]);
}

}  // namespace stowage::test
