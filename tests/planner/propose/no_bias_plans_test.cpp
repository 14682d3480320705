// Plans of networks whose normalizations have no bias: our own backward kernels write its gradient
// all the same, as scratch of the node.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "estimator/workspace/rule_workspace_source.hpp"
#include "planner/propose/proposals.hpp"
#include "tests/support/described_model.hpp"
#include "tests/support/pinned_plans.hpp"
#include "tests/support/plan_mistakes.hpp"

namespace stowage {
namespace {

std::string network(std::string_view layer) {
  return fmt::format(R"(model: n
inputs:
  x: {{shape: [batch, 8, 64]}}
  label: {{shape: [batch, 10]}}
layers:
  - linear: {{name: a, from: x, features: 64}}
  - {}
  - linear: {{name: b, features: 10}}
  - flatten
  - linear: {{name: c, features: 10}}
loss:
  mse: {{from: [c, label]}}
)",
                     layer);
}

}  // namespace

TEST_CASE("a normalization without a bias can be planned") {
  for (const std::string_view layer :
       {"layer_norm: {bias: false}", "group_norm: {groups: 2, bias: false}", "rms_norm",
        "batch_norm: {bias: false}", "batch_norm: {affine: false}",
        "batch_norm: {track_running_stats: false, bias: false}",
        "instance_norm: {affine: false}"}) {
    for (const Runtime runtime : {Runtime::stowage, Runtime::pytorch}) {
      CAPTURE(layer);
      CAPTURE(to_string(runtime));
      const ChosenStep step{.lowering = {.kernels = runtime == Runtime::pytorch
                                                        ? KernelSet::pytorch
                                                        : KernelSet::stowage,
                                         .optimizer = {.name = "adam"}}};
      PlanRequest request = testing::small_request(64_MiB);
      request.document =
          make_document(testing::described(network(layer)), step, runtime, {}, step_alone).value();
      request.batch = WholeBatch(16);
      const auto source = rule_workspace_source(8.6);
      const auto plans = make_plans(request, *source, {});
      if (!plans) FAIL(render(plans.error()));
      for (const Plan& plan : *plans) {
        CAPTURE(plan.name);
        CHECK(testing::plan_mistakes(plan) == "");
      }
    }
  }
}

}  // namespace stowage
