#include "planner/pytorch/pytorch_plan.hpp"

#include "estimator/card/software_stack.hpp"

namespace stowage {

std::string_view allocator_variable(const PytorchPlan& plan) {
  // c10/core/AllocatorConfig.h; before, the name was CUDA's.
  constexpr ReleaseVersion first_common_name{2, 9};
  const auto release = parse_version(plan.pytorch);
  return release && *release < first_common_name ? "PYTORCH_CUDA_ALLOC_CONF" : "PYTORCH_ALLOC_CONF";
}

}  // namespace stowage
