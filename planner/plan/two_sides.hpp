// The two sides of a plan for one GPU and its host: the only machine that the executor, the
// validator and the drawings know so far.
//
// Precondition of all but two_sides_mismatch: it returned "".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/plan/plan.hpp"
#include "planner/problem/residency_problem.hpp"

namespace stowage {

enum class Direction : std::uint8_t { h2d, d2h };

/// What keeps a machine from being one GPU and its host: processors that compute in device and in
/// pinned memory, one link each way between these two, and at most one pageable memory, in which
/// the CPU computes as well. "": nothing.
[[nodiscard]] std::string two_sides_mismatch(const Machine& machine);

[[nodiscard]] Device device_of(const Plan& plan, const PlannedNode& node);
/// By NodeId: when the CPU's nodes run; empty ranges for the GPU's.
[[nodiscard]] std::vector<StepRange> cpu_windows(const Plan& plan);
/// By NodeId: whether it is on the CPU and the GPU has nodes of its own while it may run.
[[nodiscard]] std::vector<bool> nodes_beside_gpu(const Plan& plan);
[[nodiscard]] Direction direction_of(const Plan& plan, const Transfer& transfer);
/// Of the machine's memory of this kind; none: it has none.
[[nodiscard]] const std::vector<Residence>& residences_in(const Plan& plan, MemoryKind kind);
/// In the GPU's memory; or the host's, pinned ones first, with one row of addresses: pageable
/// memory begins where the pinned arena ends.
[[nodiscard]] std::vector<Residence> residences_on(const Plan& plan, Device side);

}  // namespace stowage
