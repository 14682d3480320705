#include "estimator/allocator/allocator_settings.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

namespace stowage {

namespace {

constexpr int log2_of_mebibyte = 20;

int floor_log2(std::int64_t value) { return std::bit_width(static_cast<std::uint64_t>(value)) - 1; }

std::int64_t divisions_for(Bytes bytes, const RoundupDivisions& divisions) {
  const int above = floor_log2(bytes.count()) - log2_of_mebibyte;
  const int last = static_cast<int>(divisions.size()) - 1;
  return divisions[static_cast<std::size_t>(std::clamp(above, 0, last))];
}

/// A power of two stays; between two of them there are `divisions` equal steps.
Bytes rounded_to_division(Bytes bytes, std::int64_t divisions) {
  if (std::has_single_bit(static_cast<std::uint64_t>(bytes.count()))) return bytes;
  const std::int64_t below = std::int64_t{1} << floor_log2(bytes.count());
  const std::int64_t step = below >> floor_log2(divisions);
  if (step == 0) return Bytes(2 * below);
  return round_up(bytes, Bytes(step));
}

}  // namespace

Bytes rounded_size(Bytes bytes, const AllocatorSettings& settings) {
  assert(bytes > 0_B);
  if (bytes < smallest_block) return smallest_block;
  const std::int64_t divisions = divisions_for(bytes, settings.roundup_power2_divisions);
  const bool has_room = (bytes.count() - 1) / smallest_block.count() >= divisions;
  if (divisions > 1 && has_room) {
    return rounded_to_division(bytes, divisions);
  }
  return round_up(bytes, smallest_block);
}

Bytes segment_size(Bytes rounded, const AllocatorSettings& settings) {
  if (rounded <= largest_small_block) return small_segment;
  if (rounded < smallest_own_segment) return settings.large_segment;
  return round_up(rounded, large_segment_rounding);
}

}  // namespace stowage
