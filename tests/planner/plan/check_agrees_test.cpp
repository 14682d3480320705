// `check --runtime stowage` and the plan that keeps everything on the GPU count the same bytes.
#include <doctest/doctest.h>

#include "estimator/check/check.hpp"
#include "planner/assemble/all_gpu_placement.hpp"
#include "planner/assemble/assemble_plan.hpp"
#include "planner/problem/gpu_budget.hpp"
#include "planner/problem/rates.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

class Workspaces : public WorkspaceSource {
 public:
  WorkspaceAnswer engines(const ConvolutionQuery& query) override {
    const Bytes first(4096 * (query.x[2] + query.w[0]));
    return {.engines = {{"first", first}, {"second", Bytes(1024)}, {"third", Bytes(0)}},
            .origin = WorkspaceOrigin::rule};
  }
};

}  // namespace

TEST_CASE("check for our own executor prints the all-GPU plan's bytes") {
  Workspaces workspaces;
  const Card card = generic_card(80_GiB);
  for (const std::string name : {"mlp", "mnist-cnn", "resnet18", "unet", "vgg16", "gpt2"}) {
    for (const int batch : {1, 4}) {
      CAPTURE(name);
      CAPTURE(batch);
      const auto step =
          size_step(testing::lowered(testing::shipped(name), {.optimizer = {.name = "adam"}}),
                    batch, workspaces);
      REQUIRE(step.has_value());
      const CheckReport report = check(*step, card, {.runtime = Runtime::stowage});
      const Rates rates =
          make_rates(card, {.memory = 64_GiB, .cpu_flops = 1e11, .memory_bandwidth = 1e10});
      const ResidencyProblem problem =
          make_problem(*step, rates, {.compute_on_gpu = true, .all_on_gpu = true});
      const Plan plan = assemble_plan(*step, problem, all_gpu_placement(problem),
                                      {.budget = GpuBudget::unlimited()});
      CHECK(plan.totals.gpu_peak.count() == report.tensor_bytes().count());
      CHECK(plan.totals.arena.count() == report.reserved_bytes().count());
    }
  }
}

}  // namespace stowage
