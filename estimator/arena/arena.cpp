#include "estimator/arena/arena.hpp"

#include <algorithm>
#include <cassert>

#include "estimator/arena/arena_search.hpp"
#include "estimator/arena/sweep_packing.hpp"
#include "estimator/base/live_sum.hpp"

namespace stowage {
namespace {

// Above this many blocks the search's table of overlaps (a bit a pair) would be over 18 MB.
constexpr std::size_t search_limit = 12'000;
// Block comparisons a unit of effort.
constexpr std::int64_t work_per_effort = 20'000'000;

/// Live sums by step, and the steps at which anything starts: between two of those the live set
/// only shrinks, so overlap and the bound can be told from them alone.
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

}  // namespace

ArenaPacking pack_arena(std::span<const ArenaRequest> requests, const PackingOptions& options) {
  assert(options.alignment.count() > 0 && options.effort >= 0);
  ArenaPacking packing;
  packing.offsets.resize(requests.size());
  const Timeline timeline(requests);
  ArenaBlocks blocks;
  blocks.steps = static_cast<std::int32_t>(timeline.starts.size());
  std::vector<std::size_t> request_of;
  Bytes floor, total;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Bytes size = round_up(requests[i].bytes, options.alignment);
    std::vector<StepRange> live = timeline.compress(requests[i].live);
    if (size.count() == 0 || live.empty()) continue;
    total += size;  // no offset can exceed the total: one check for all the sums below
    // What is always there shares its place with nothing: to put it at the bottom costs nothing.
    if (live.front() == StepRange{0, blocks.steps}) {
      packing.offsets[i] = floor;
      floor += size;
      continue;
    }
    request_of.push_back(i);
    blocks.size.push_back(size.count());
    std::int64_t duration = 0;
    for (const StepRange& range : requests[i].live) duration += std::max(range.length(), 0);
    blocks.duration.push_back(duration);
    blocks.live.push_back(std::move(live));
  }
  blocks.lower_bound = peak(live_bytes(blocks)).bytes.count();
  const std::int64_t enough = std::max<std::int64_t>(0, (options.enough - floor).count());
  const BlockOffsets placed =
      blocks.count() > search_limit
          ? sweep_packing(blocks)
          : search_packing(blocks, enough, options.effort * work_per_effort);
  for (std::size_t k = 0; k < request_of.size(); ++k) {
    packing.offsets[request_of[k]] = floor + Bytes(placed.offset[k]);
  }
  packing.peak = floor + Bytes(placed.peak);
  packing.lower_bound = floor + Bytes(blocks.lower_bound);
  return packing;
}

}  // namespace stowage
