// AllocatorSettings: what can be set of PyTorch's CUDA caching allocator, and the sizes that
// follow.
//
// Rules as of PyTorch 2.15 (c10/core/AllocatorConfig.cpp, c10/cuda/CUDACachingAllocator.cpp); with
// the defaults they are those of 2.0 and later. alloc_conf.hpp reads them from PyTorch's own
// syntax.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "estimator/base/bytes.hpp"

namespace stowage {

inline constexpr Bytes smallest_block = 512_B;       ///< every size is a multiple of it
inline constexpr Bytes largest_small_block = 1_MiB;  ///< rounded sizes up to it: the small pool
inline constexpr Bytes small_segment = 2_MiB;
inline constexpr Bytes smallest_own_segment = 10_MiB;  ///< from here on a segment of its own size
inline constexpr Bytes large_segment_rounding = 2_MiB;

/// Divisions by size: entry i is for sizes in [2^i MiB, 2^(i+1) MiB), the first also for all below,
/// the last also for all above. 0 and 1: no division.
using RoundupDivisions = std::array<std::int64_t, 16>;

struct AllocatorSettings {
  /// Blocks of this size or more are never split (max_split_size_mb); none: all are.
  std::optional<Bytes> max_split_size;
  /// How much larger than asked an unsplit block may be (max_non_split_rounding_mb).
  Bytes max_non_split_rounding = 20_MiB;
  /// The segment of requests of 1 to 10 MiB, and the page of large expandable segments
  /// (large_segment_size_mb). More than 10 MiB.
  Bytes large_segment = 20_MiB;
  RoundupDivisions roundup_power2_divisions{};
  /// Share of the allowed memory above which cached blocks are collected; 0: never. Works only
  /// together with memory_fraction.
  double garbage_collection_threshold = 0;
  /// Share of the device's total that may be reserved, in [0, 1) (per_process_memory_fraction,
  /// torch.cuda.set_per_process_memory_fraction); none: all, which 1.0 means as well.
  std::optional<double> memory_fraction;
  bool expandable_segments = false;
  /// Refuse at once, without releasing the cache, what would exceed the fraction
  /// (throw_on_cudamalloc_oom). Where a fraction below 1 is set, that limit is met first and the
  /// cache is released as always.
  bool refuse_early = false;

  bool operator==(const AllocatorSettings&) const = default;
};

/// What a request of `bytes` (> 0) is rounded to: to 512 bytes, or to one of the equal steps
/// between the two powers of two around it.
[[nodiscard]] Bytes rounded_size(Bytes bytes, const AllocatorSettings& settings);

/// How much is asked of the driver for a request of a rounded size. It is also the figure after
/// "Tried to allocate" when that fails.
[[nodiscard]] Bytes segment_size(Bytes rounded, const AllocatorSettings& settings);

}  // namespace stowage
