#include "estimator/arena/arena.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

#include "estimator/arena/arena_search.hpp"
#include "estimator/arena/greedy_orders.hpp"
#include "estimator/arena/place_conflict.hpp"
#include "estimator/arena/sweep_packing.hpp"
#include "estimator/base/live_sum.hpp"

namespace stowage {
namespace {

// Above this many blocks the search's table of overlaps (a bit a pair) would be over 18 MB.
constexpr std::size_t search_limit = 12'000;
// An order takes time by the square of the blocks: of this many each takes milliseconds, and
// without effort only the first few are tried.
constexpr std::size_t slow_orders = 2'000, few_orders = 3;
// Block comparisons a unit of effort.
constexpr std::int64_t work_per_effort = 20'000'000;

/// Live sums by step, and the steps at which a request starts. Between two of these the live set
/// only shrinks, so overlaps and the bound follow from them alone.
struct Timeline {
  std::vector<std::int32_t> starts;

  explicit Timeline(std::span<const ArenaRequest> requests) {
    for (const ArenaRequest& request : requests) {
      if (request.bytes.count() == 0) continue;
      for (const StepRange& range : request.live) {
        if (!range.empty()) starts.push_back(range.begin);
      }
    }
    std::sort(starts.begin(), starts.end());
    starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  }

  [[nodiscard]] std::int32_t index(std::int32_t step) const {
    return static_cast<std::int32_t>(std::lower_bound(starts.begin(), starts.end(), step) -
                                     starts.begin());
  }

  [[nodiscard]] std::vector<StepRange> compress(const std::vector<StepRange>& live) const {
    std::vector<StepRange> result;
    for (const StepRange& range : live) {
      assert(result.empty() || range.begin >= live.front().begin);
      const StepRange compressed{index(range.begin), index(range.end)};
      if (compressed.empty()) continue;
      if (!result.empty() && result.back().end == compressed.begin) {
        result.back().end = compressed.end;
      } else {
        result.push_back(compressed);
      }
    }
    return result;
  }
};

/// The blocks to place, and the offsets of the requests that are always live.
struct PlacedFloor {
  Timeline timeline;
  ArenaBlocks blocks;
  std::vector<std::size_t> request_of;               // by block
  std::vector<std::pair<std::size_t, Bytes>> below;  // (request, offset) of what is always there
  Bytes floor;                                       // their sum
};

PlacedFloor make_blocks(std::span<const ArenaRequest> requests, Bytes alignment) {
  PlacedFloor made{Timeline(requests), {}, {}, {}, {}};
  ArenaBlocks& blocks = made.blocks;
  blocks.steps = static_cast<std::int32_t>(made.timeline.starts.size());
  Bytes total;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Bytes size = round_up(requests[i].bytes, alignment);
    std::vector<StepRange> live = made.timeline.compress(requests[i].live);
    if (size.count() == 0 || live.empty()) continue;
    total += size;  // no offset can exceed the total: one check for all the sums below
    // A request that is always live shares its place with no other, so it is put at the bottom.
    if (live.front() == StepRange{0, blocks.steps}) {
      made.below.emplace_back(i, made.floor);
      made.floor += size;
      continue;
    }
    made.request_of.push_back(i);
    blocks.size.push_back(size.count());
    std::int64_t duration = 0;
    for (const StepRange& range : requests[i].live) duration += std::max(range.length(), 0);
    blocks.duration.push_back(duration);
    blocks.live.push_back(std::move(live));
  }
  blocks.lower_bound = peak(live_bytes(blocks)).bytes.count();
  return made;
}

std::int64_t above(Bytes floor, Bytes peak) {
  return std::max<std::int64_t>(0, (peak - floor).count());
}

/// The blocks in ascending order of their offsets.
BlockOrder order_of(const PlacedFloor& made, std::span<const Bytes> offsets) {
  BlockOrder order(made.blocks.count());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::int32_t block) {
    return offsets[made.request_of[static_cast<std::size_t>(block)]];
  });
  return order;
}

}  // namespace

ArenaPacking pack_arena(std::span<const ArenaRequest> requests, const PackingOptions& options) {
  assert(options.alignment.count() > 0 && options.effort >= 0);
  assert(options.similar_offsets.empty() || options.similar_offsets.size() == requests.size());
  PlacedFloor made = make_blocks(requests, options.alignment);
  ArenaBlocks& blocks = made.blocks;
  ArenaPacking packing;
  packing.lower_bound = made.floor + Bytes(blocks.lower_bound);
  BlockOffsets placed;
  if (blocks.count() > search_limit) {
    placed = sweep_packing(blocks);
  } else {
    if (options.effort > 0) {
      blocks.lower_bound = find_conflict(blocks, blocks.lower_bound).least_peak;
    }
    std::vector<BlockOrder> orders = greedy_orders(blocks);
    if (options.effort == 0 && blocks.count() > slow_orders) orders.resize(few_orders);
    if (!options.similar_offsets.empty())
      orders.insert(orders.begin(), order_of(made, options.similar_offsets));
    SearchedPacking found = search_packing(blocks, orders, above(made.floor, options.target_peak),
                                           options.effort * work_per_effort);
    placed = std::move(found.placed);
    packing.work = found.work;
  }
  packing.offsets.resize(requests.size());
  for (const auto& [request, offset] : made.below) packing.offsets[request] = offset;
  for (std::size_t k = 0; k < made.request_of.size(); ++k) {
    packing.offsets[made.request_of[k]] = made.floor + Bytes(placed.offset[k]);
  }
  packing.peak = made.floor + Bytes(placed.peak);
  return packing;
}

ArenaBound bound_arena(std::span<const ArenaRequest> requests, Bytes peak, Bytes alignment) {
  const PlacedFloor made = make_blocks(requests, alignment);
  const PlaceConflict conflict = find_conflict(made.blocks, above(made.floor, peak));
  ArenaBound bound{
      made.floor + Bytes(made.blocks.lower_bound), made.floor + Bytes(conflict.least_peak), {}};
  std::int32_t steps = 0;
  for (const ArenaRequest& request : requests) {
    if (!request.live.empty()) steps = std::max(steps, request.live.back().end);
  }
  const std::vector<std::int32_t>& starts = made.timeline.starts;
  for (std::size_t i = 0; i < conflict.excess.size(); ++i) {
    if (conflict.excess[i].empty()) continue;
    bound.excess[i].resize(static_cast<std::size_t>(steps));
    for (std::size_t k = 0; k < starts.size(); ++k) {
      const std::int32_t end = k + 1 < starts.size() ? starts[k + 1] : steps;
      for (std::int32_t t = starts[k]; t < end; ++t) {
        bound.excess[i][static_cast<std::size_t>(t)] = Bytes(conflict.excess[i][k]);
      }
    }
  }
  return bound;
}

}  // namespace stowage
