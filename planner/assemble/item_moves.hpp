// ItemMoves: what a placement asks of each item: stays on the GPU, copies between the two sides,
// and which of them waits for which. Where in the schedule the copies stand is schedule_copies's
// business.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/base/step_range.hpp"
#include "planner/problem/residency_problem.hpp"

namespace stowage {

/// An item on the GPU, from the boundary before its first touch to the one after its last.
struct GpuStay {
  std::int32_t item = 0;
  StepRange steps;
  bool from_previous = false;  ///< it begins at 0 because it stayed over the last step's end
  bool to_next = false;        ///< it stays over this step's end
};

struct Download {
  std::int32_t stay = 0;
  std::int32_t earliest = 0;  ///< boundary after the node that wrote the version
  std::int32_t latest = 0;  ///< boundary at which the host copy is wanted, or before which the next
                            ///< write comes; the number of nodes: only the next step wants it
};

struct Upload {
  std::int32_t stay = 0;      ///< which it begins
  std::int32_t need = 0;      ///< the node that wants it
  std::int32_t earliest = 0;  ///< boundary from which the host copy is there and the last stay over
  std::int32_t download = -1;       ///< which must have finished first; -1: none in this step
  std::int32_t previous_stay = -1;  ///< of the same item in this step; -1: none
};

/// One version of an item on the host: what fills it and who reads it.
struct HostCopy {
  std::int32_t item = 0;
  std::int32_t begin = 0;      ///< 0, or the CPU node that writes it; with a download: its begin
  std::int32_t download = -1;  ///< which fills it; -1: none
  std::vector<std::int32_t> users;    ///< nodes on the CPU that write or read it
  std::vector<std::int32_t> uploads;  ///< that read it
  bool at_start = false;              ///< valid when the step starts
  bool to_next = false;               ///< wanted by the next step
};

struct ItemMoves {
  std::vector<GpuStay> stays;       ///< by item, then by time
  std::vector<Download> downloads;  ///< by item, then by time
  std::vector<Upload> uploads;      ///< by item, then by time
  std::vector<HostCopy> copies;     ///< by item, then by time
};

/// Precondition: evaluate() calls the placement consistent. Linear in touches. A GPU copy that a
/// placement keeps or fetches and that nothing reads afterwards is left out.
[[nodiscard]] ItemMoves make_moves(const ResidencyProblem& problem, const Placement& placement);

}  // namespace stowage
