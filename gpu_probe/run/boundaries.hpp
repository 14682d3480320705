// What a plan has happen between its nodes, boundary by boundary; in which order: executor.hpp.
#pragma once

#include <cstddef>
#include <vector>

#include "planner/plan/plan.hpp"

namespace stowage {

/// What begins and what ends at one boundary. Indices: of residences into residences_in's of the
/// GPU's memory and residences_on's of the host (two_sides.hpp), of copies into Plan::transfers.
struct Boundary {
  std::vector<std::size_t> gpu_begins, gpu_ends, host_begins, host_ends;
  std::vector<std::size_t> upload_begins, upload_ends, download_begins, download_ends;
  std::vector<NodeId> cpu_begins, cpu_ends;  // nodes
};

/// One more than there are nodes: boundary t lies before node t. Linear.
[[nodiscard]] std::vector<Boundary> boundaries_of(const Plan& plan);

}  // namespace stowage
