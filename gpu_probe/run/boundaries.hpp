// Boundary: what a plan begins and ends between two nodes. In which order it happens: executor.hpp.
#pragma once

#include <cstddef>
#include <vector>

#include "planner/plan/plan.hpp"

namespace stowage {

/// Residences on the GPU are indices into residences_in(plan, MemoryKind::device), those on the
/// host into residences_on(plan, Device::cpu) (two_sides.hpp). Uploads and downloads are indices
/// into Plan::transfers.
struct Boundary {
  std::vector<std::size_t> gpu_begins, gpu_ends, host_begins, host_ends;
  std::vector<std::size_t> upload_begins, upload_ends, download_begins, download_ends;
  std::vector<NodeId> cpu_begins, cpu_ends;  ///< nodes of the CPU
};

/// Boundary t lies before node t; the last one lies behind the last node. Takes linear time.
[[nodiscard]] std::vector<Boundary> boundaries_of(const Plan& plan);

}  // namespace stowage
