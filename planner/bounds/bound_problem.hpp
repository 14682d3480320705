// BoundProblem: a residency problem as the checker of bounds states it, independently of the
// planner.
//
// It holds the costs and sizes of nodes and storages, by the definition in docs/planner.md ("The
// problem"). Costs are in any one unit: seconds, seconds weighted by lane, or bytes. Storages and
// nodes keep the step's numbers; sizes are bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stowage {

/// The side of a node or of a gap: undecided, on the GPU, or not on the GPU.
enum class Side : std::uint8_t { open, gpu, away };

struct BoundEngine {
  double cost = 0;
  std::int64_t workspace = 0;
};

struct BoundNode {
  std::vector<BoundEngine> engines;  ///< on the GPU; never empty
  double cpu_cost = 0;
  std::int64_t temporaries = 0;
  Side side = Side::open;

  /// The memory that the node needs on the GPU beside its storages, with its smallest engine.
  [[nodiscard]] std::int64_t least_scratch() const;
};

struct BoundTouch {
  std::int32_t step = 0;
  bool reads = false;
  bool writes = false;
};

/// A storage. Gap i leads from touch i to the next one. Where the value goes round the step's end,
/// the last gap leads to the first touch.
struct BoundItem {
  std::int32_t number = 0;  ///< the storage's
  std::int64_t bytes = 0;
  std::vector<BoundTouch> touches;  ///< ascending steps, never empty
  bool goes_round = false;
  bool host_at_start = false;  ///< the value before its first write is on the host at no cost
  double upload = 0, download = 0;
  std::vector<Side> gaps;  ///< by gap

  /// The touch that a gap leads to.
  [[nodiscard]] std::size_t after(std::size_t gap) const { return (gap + 1) % touches.size(); }
  /// The gap that leads to a touch; -1: none.
  [[nodiscard]] std::ptrdiff_t before(std::size_t touch) const;
};

struct BoundProblem {
  std::vector<BoundNode> nodes;  ///< node i at step i
  std::vector<BoundItem> items;  ///< ascending numbers
  std::int64_t limit = 0;        ///< the memory limit of every step

  /// The number of nodes and touches, which the work on a bound grows with.
  [[nodiscard]] std::size_t size() const;
};

/// Calls `visit(begin, end)` for the steps strictly inside a gap: once, or twice where the gap goes
/// round the step's end.
template <typename Visit>
void each_range_inside(const BoundItem& item, std::size_t gap, std::int32_t steps,
                       const Visit& visit) {
  const std::int32_t begin = item.touches[gap].step + 1;
  if (gap + 1 < item.touches.size()) {
    visit(begin, item.touches[gap + 1].step);
  } else {
    visit(begin, steps);
    visit(std::int32_t{0}, item.touches.front().step);
  }
}

}  // namespace stowage
