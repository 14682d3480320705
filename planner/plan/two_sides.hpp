// The two sides (GPU and host) of a plan for one GPU and its host. The executor, the validator and
// the drawings support no other machine so far.
//
// Precondition of all functions but two_sides_mismatch: it returned "".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/plan/plan.hpp"
#include "planner/problem/residency_problem.hpp"

namespace stowage {

enum class Direction : std::uint8_t { h2d, d2h };

/// The reason why a machine is not one GPU and its host; "": it is. Such a machine has processors
/// that compute in device and in pinned memory, one link each way between these two memories, and
/// at most one pageable memory, in which the CPU computes as well.
[[nodiscard]] std::string two_sides_mismatch(const Machine& machine);

[[nodiscard]] Device device_of(const Plan& plan, const PlannedNode& node);
/// By NodeId: the window of a node on the CPU; an empty range for a node on the GPU.
[[nodiscard]] std::vector<StepRange> cpu_windows(const Plan& plan);
/// By NodeId: whether the node is on the CPU and nodes of the GPU may run during its window.
[[nodiscard]] std::vector<bool> nodes_beside_gpu(const Plan& plan);
[[nodiscard]] Direction direction_of(const Plan& plan, const Transfer& transfer);
/// The residences in the machine's memory of this kind; empty: it has no such memory.
[[nodiscard]] const std::vector<Residence>& residences_in(const Plan& plan, MemoryKind kind);
/// The residences in the GPU's memory, or in the host's. The host's memories have one row of
/// addresses: pageable memory begins where the pinned arena ends, and pinned residences come first.
[[nodiscard]] std::vector<Residence> residences_on(const Plan& plan, Device side);
/// By StorageId: whether it is on the GPU throughout the step.
[[nodiscard]] std::vector<bool> resident_throughout(const Plan& plan);

}  // namespace stowage
