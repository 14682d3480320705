// Compares a device's memory in use, as its driver tells it around a plan's execution, with the
// plan.
//
// It is read four times: before anything, with only the context; without arenas, when all kernels
// and libraries have been loaded; with the arenas; when they have been freed. A backend without a
// device of its own tells nothing, and nothing is checked.
#pragma once

#include <vector>

#include "gpu_probe/backend/backend.hpp"
#include "planner/plan/plan.hpp"
#include "planner/validate/validate_plan.hpp"

namespace stowage {

struct DeviceMemoryUse {
  MemoryReading before, loaded, with_arenas, after;
};

/// How much more than the plan's figures NVIDIA's context and libraries may take: docs/gpus.md,
/// "What is uncertain".
inline constexpr Bytes uncertain_context = 152_MiB;
/// Checks that the arenas take their planned bytes (within a page or one percent), that all of them
/// are given back, and, for a plan made for a card, that all memory in use is no more than the plan
/// allows for.
[[nodiscard]] std::vector<Check> check_device_memory(const Plan& plan, const DeviceMemoryUse& use);

}  // namespace stowage
