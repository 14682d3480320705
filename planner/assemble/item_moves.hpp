// ItemMoves: the stays on the GPU and the copies that a placement implies for each item, and which
// of them waits for which. schedule_copies (schedule_copies.hpp) decides when the copies run.
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/base/step_range.hpp"
#include "planner/problem/residency_problem.hpp"

namespace stowage {

/// A stay of an item on the GPU, from the boundary before its first touch to the one after its
/// last.
struct GpuStay {
  std::int32_t item = 0;
  StepRange steps;
  bool from_previous = false;  ///< it begins at 0, since it stayed over the last step's end
  bool to_next = false;        ///< it stays over this step's end
};

struct Download {
  std::int32_t stay = 0;
  std::int32_t earliest = 0;  ///< boundary after the node that wrote the version
  /// Boundary at which the host copy is needed, or before which the next write comes; the number of
  /// nodes: only the next step needs it.
  std::int32_t latest = 0;
};

struct Upload {
  std::int32_t stay = 0;       ///< the stay that it begins
  std::int32_t need = 0;       ///< the node that needs it
  std::int32_t earliest = 0;   ///< boundary at which the host copy is there and the last stay over
  std::int32_t download = -1;  ///< the download that it waits for; -1: none in this step
  std::int32_t previous_stay = -1;  ///< of the same item in this step; -1: none
};

/// One version of an item on the host: the copy or node that fills it, and its readers.
struct HostCopy {
  std::int32_t item = 0;
  std::int32_t begin = 0;      ///< 0, or the CPU node that writes it; or the begin of its download
  std::int32_t download = -1;  ///< the download that fills it; -1: none
  std::vector<std::int32_t> users;    ///< nodes on the CPU that write or read it
  std::vector<std::int32_t> uploads;  ///< uploads that read it
  bool at_start = false;              ///< valid when the step starts
  bool to_next = false;               ///< needed by the next step
};

struct ItemMoves {
  std::vector<GpuStay> stays;       ///< by item, then by time
  std::vector<Download> downloads;  ///< by item, then by time
  std::vector<Upload> uploads;      ///< by item, then by time
  std::vector<HostCopy> copies;     ///< by item, then by time
};

/// Precondition: evaluate() calls the placement consistent. Leaves out a GPU copy that the
/// placement keeps or fetches but that nothing reads afterwards. Linear in touches.
[[nodiscard]] ItemMoves make_moves(const ResidencyProblem& problem, const Placement& placement);

}  // namespace stowage
