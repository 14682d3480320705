// What the recount does not know of a plan for PyTorch, and says so.
#include <doctest/doctest.h>

#include "planner/validate_pytorch/recount.hpp"

namespace stowage {

TEST_CASE("a plan that the recount does not know all of is named as such") {
  PytorchPlan plan;
  plan.optimizer_on_cpu = true;
  plan.early_updates = true;
  plan.cpu_parameters = {"fc.weight"};
  plan.checkpoint = {"layer1", "layer1.0", "layer1[1:3]", "layer10", "features[0:5]", "features.4"};
  plan.offload.push_back({.saved = {{.key = "layer1.0#input0"}}});
  CHECK_FALSE(unknown_to_recount(plan, {}).has_value());

  PytorchPlan deep = plan;
  deep.checkpoint.emplace_back("layer1.2.conv");
  CHECK(unknown_to_recount(deep, {}) == "'layer1.2.conv', which runs again within 2 others");
  // Of one model the root has the name of its class, and its children's paths begin with nothing.
  PytorchPlan root;
  root.checkpoint = {"Sequential[0:2]", "0", "0.conv"};
  CHECK_FALSE(unknown_to_recount(root, {}).has_value());
  CHECK(unknown_to_recount(root, {{.path = "Sequential", .is_sequence = true},
                                  {.path = "0"},
                                  {.path = "0.conv"},
                                  {.path = "1"}}) == "'0.conv', which runs again within 2 others");
}

}  // namespace stowage
