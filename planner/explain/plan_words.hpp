// plan_in_words: a plan in words: "swaps 14 activations of conv1 to conv7, 2.1 GiB up and 2.1 GiB
// down; runs 15 updates on the CPU".
#pragma once

#include <string>

#include "planner/plan/plan.hpp"

namespace stowage {

/// The means by which the plan keeps within the budget, without the plan's name; "keeps everything
/// on the GPU" where it uses none. Precondition: two_sides_mismatch of its machine is "".
[[nodiscard]] std::string plan_in_words(const Plan& plan);

}  // namespace stowage
