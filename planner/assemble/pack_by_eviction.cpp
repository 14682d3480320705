#include "planner/assemble/pack_by_eviction.hpp"

#include <algorithm>

#include "estimator/arena/arena.hpp"
#include "planner/assemble/packed_blocks.hpp"

namespace stowage {
namespace {

constexpr std::int64_t comparisons_a_unit = 800;  // of work (work_budget.hpp)

/// About the number of comparisons of pack_arena: its searches, and its orders by the square of the
/// blocks.
std::int64_t packing_work(std::size_t blocks) {
  return 20'000'000 + 4 * static_cast<std::int64_t>(blocks * blocks);
}

class EvictionPacking {
 public:
  explicit EvictionPacking(const EvictionRequest& of)
      : of_(of), blocks_(of.step, of.problem, of.placement, of.budget) {
    take(of.offsets);
    cost_packed_ = blocks_.cost_seconds();
  }

  [[nodiscard]] std::int64_t work() const { return blocks_.work() + packed_work_; }

  std::optional<PackedStep> run() {
    while (work() <= of_.work) {
      if (blocks_.cost_seconds() >= of_.cost_limit) return std::nullopt;
      const auto next = blocks_.largest_without_place();
      if (!next) return result();
      const std::int64_t size = blocks_.all()[*next].size;
      if (blocks_.cost_seconds() > cost_packed_ && size < round_size_ / 2) {
        repack();
        cost_packed_ = blocks_.cost_seconds();
        round_size_ = 0;
      } else {
        round_size_ = std::max(round_size_, size);
        if (!blocks_.place_cheapest(*next)) return std::nullopt;
      }
    }
    return std::nullopt;
  }

 private:
  void take(std::span<const Bytes> offsets) {
    for (std::size_t i = 0; i < offsets.size(); ++i) blocks_.place(i, offsets[i].count());
  }

  /// Packs all blocks anew and takes the new packing if it leaves fewer bytes without a place.
  void repack() {
    std::vector<ArenaRequest> requests;
    std::vector<Bytes> near;
    std::int64_t left = 0, then = 0;
    for (const ArenaBlock& block : blocks_.all()) {
      requests.push_back({block.live, Bytes(block.size)});
      near.push_back(block.is_placed() ? Bytes(block.offset) : of_.budget.bytes);
      if (!block.is_placed()) left += block.size;
    }
    const ArenaPacking packing = pack_arena(
        requests, {.effort = 1, .target_peak = of_.budget.bytes, .similar_offsets = near});
    for (std::size_t i = 0; i < requests.size(); ++i) {
      const Bytes end = packing.offsets[i] + requests[i].bytes;
      if (!of_.budget.fits(end)) then += requests[i].bytes.count();
    }
    packed_work_ += packing_work(requests.size());
    if (then < left) take(packing.offsets);
  }

  PackedStep result() {
    blocks_.fill(of_.work);
    PackedStep packed{blocks_.placement(), {}, 0};
    for (const ArenaBlock& block : blocks_.all()) {
      packed.offsets.emplace_back(std::max<std::int64_t>(block.offset, 0));
    }
    packed.cost_seconds = evaluate(of_.problem, packed.placement).cost_seconds;
    return packed;
  }

  const EvictionRequest& of_;
  PackedBlocks blocks_;
  double cost_packed_ = 0;       // of what was packed last
  std::int64_t round_size_ = 0;  // the largest that was put since
  std::int64_t packed_work_ = 0;
};

}  // namespace

std::optional<PackedStep> pack_by_eviction(const EvictionRequest& of) {
  EvictionPacking packing(of);
  auto packed = packing.run();
  if (of.charged != nullptr) of.charged->spend(packing.work() / comparisons_a_unit);
  return packed;
}

}  // namespace stowage
