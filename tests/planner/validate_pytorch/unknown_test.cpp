// What the recount does not know of a plan for PyTorch, and says so.
#include <doctest/doctest.h>

#include "planner/validate_pytorch/recount.hpp"

namespace stowage {

TEST_CASE("a plan that the recount does not know all of is named as such") {
  PytorchPlan plan;
  plan.optimizer_on_cpu = true;
  plan.checkpoint = {"layer1.0", "layer1.1", "layer10"};
  plan.offload.push_back({.saved = {{.key = "layer1.0#0"}}});
  CHECK_FALSE(unknown_to_recount(plan).has_value());

  PytorchPlan early = plan;
  early.early_updates = true;
  CHECK(unknown_to_recount(early) == "updates as gradients come");
  PytorchPlan some = plan;
  some.cpu_parameters = {"fc.weight"};
  CHECK(unknown_to_recount(some) == "the optimizer of some parameters on the CPU");
  PytorchPlan rows = plan;
  rows.checkpoint.emplace_back("features[0:5]");
  CHECK(unknown_to_recount(rows) == "rows of modules that run again");
  PytorchPlan nested = plan;
  nested.checkpoint.emplace_back("layer1");
  CHECK(unknown_to_recount(nested) == "modules that run again within others");
  PytorchPlan inputs = plan;
  inputs.offload.push_back({.saved = {{.key = "layer2.conv#input"}}});
  CHECK_FALSE(unknown_to_recount(inputs).has_value());  // a description's key
  inputs.offload.push_back({.saved = {{.key = "layer1.0#input0"}}});
  CHECK(unknown_to_recount(inputs) == "inputs of modules that run again");
}

}  // namespace stowage
