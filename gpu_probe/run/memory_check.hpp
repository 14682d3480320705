// What a device's driver says of its memory around a plan's execution, held against the plan.
//
// Read four times: before anything, with the context alone; once all kernels and libraries have
// been loaded, without arenas; with them; and when they have been given back. A backend without a
// device of its own says nothing, and nothing is checked.
#pragma once

#include <vector>

#include "gpu_probe/backend/backend.hpp"
#include "planner/plan/plan.hpp"
#include "planner/validate/validate_plan.hpp"

namespace stowage {

struct DeviceMemoryUse {
  MemoryReading before, loaded, with_arenas, after;
};

/// What NVIDIA's context and libraries may take beyond the plan's figures: docs/gpus.md, "What is
/// uncertain".
inline constexpr Bytes uncertain_context = 152_MiB;
/// The arena's bytes within a page or one percent; what is given back, all of it; and all that is
/// in use against what the plan leaves to the context, where it was made for a card.
[[nodiscard]] std::vector<Check> check_device_memory(const Plan& plan, const DeviceMemoryUse& use);

}  // namespace stowage
