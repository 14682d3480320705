// BoundProblem: a residency problem as whoever checks a bound states it, apart from the planner's.
//
// What nodes and storages cost and take, by the definition that docs/planner.md gives ("The
// problem"). Costs are in any one unit: seconds, seconds weighted by lane, or bytes. Storages and
// nodes keep the step's numbers; sizes are bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stowage {

/// Whether something is on the GPU: open, or decided.
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

  /// What it takes on the GPU beside its storages, with whichever engine.
  [[nodiscard]] std::int64_t least_scratch() const;
};

struct BoundTouch {
  std::int32_t step = 0;
  bool reads = false;
  bool writes = false;
};

/// A storage. Gap i leads from touch i to the next one; of what goes round the step's end the last
/// gap leads to the first touch.
struct BoundItem {
  std::int32_t number = 0;  ///< the storage's
  std::int64_t bytes = 0;
  std::vector<BoundTouch> touches;  ///< ascending steps, never empty
  bool goes_round = false;
  bool host_at_start = false;  ///< the value before its first write is on the host for nothing
  double upload = 0, download = 0;
  std::vector<Side> gaps;  ///< by gap

  /// By gap: the touch that it leads to.
  [[nodiscard]] std::size_t after(std::size_t gap) const { return (gap + 1) % touches.size(); }
  /// The gap that leads to a touch; -1: none.
  [[nodiscard]] std::ptrdiff_t before(std::size_t touch) const;
};

struct BoundProblem {
  std::vector<BoundNode> nodes;  ///< node i at step i
  std::vector<BoundItem> items;  ///< ascending numbers
  std::int64_t limit = 0;        ///< of memory at every step

  /// Nodes and touches: what computing a bound walks.
  [[nodiscard]] std::size_t size() const;
};

/// `visit(begin, end)` for the steps strictly inside a gap: one range, or two round the step's end.
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
