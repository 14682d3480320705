// AllocatorSettings: the settings of PyTorch's CUDA caching allocator, and the request and segment
// sizes that follow from them.
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

inline constexpr Bytes smallest_block = 512_B;       ///< block sizes are multiples of it
inline constexpr Bytes largest_small_block = 1_MiB;  ///< rounded sizes up to it: small pool
inline constexpr Bytes small_segment = 2_MiB;
/// Requests from this size on get a segment of their own size.
inline constexpr Bytes smallest_own_segment = 10_MiB;
inline constexpr Bytes large_segment_rounding = 2_MiB;

/// Steps between two powers of two, by size: entry i is for sizes in [2^i MiB, 2^(i+1) MiB); the
/// first entry also covers smaller sizes, the last one larger sizes. 0 and 1: sizes are not
/// rounded.
using RoundupDivisions = std::array<std::int64_t, 16>;

struct AllocatorSettings {
  /// Blocks of this size or more are never split (max_split_size_mb). None: every block may be
  /// split.
  std::optional<Bytes> max_split_size;
  /// How much larger than the request an unsplit block may be (max_non_split_rounding_mb).
  Bytes max_non_split_rounding = 20_MiB;
  /// Size of the segment for requests of 1 to 10 MiB, and of the pages of large expandable segments
  /// (large_segment_size_mb). More than 10 MiB.
  Bytes large_segment = 20_MiB;
  RoundupDivisions roundup_power2_divisions{};
  /// Share of the allowed memory above which cached blocks are released; 0: never. Has an effect
  /// only together with memory_fraction.
  double garbage_collection_threshold = 0;
  /// Share of the device's total that may be reserved, in [0, 1) (per_process_memory_fraction,
  /// torch.cuda.set_per_process_memory_fraction); none: all, which 1.0 means as well.
  std::optional<double> memory_fraction;
  bool expandable_segments = false;
  /// Refuse a request that would exceed the fraction at once, without releasing the cache
  /// (throw_on_cudamalloc_oom). With a fraction below 1 that limit is checked first, and the cache
  /// is released as usual.
  bool refuse_early = false;

  bool operator==(const AllocatorSettings&) const = default;
};

/// The block size for a request of `bytes` (> 0): rounded up to 512 bytes, or to one of the equal
/// steps between the neighbouring powers of two.
[[nodiscard]] Bytes rounded_size(Bytes bytes, const AllocatorSettings& settings);

/// The size of the segment that is requested from the driver for a rounded request. It is also the
/// figure after "Tried to allocate" when that fails.
[[nodiscard]] Bytes segment_size(Bytes rounded, const AllocatorSettings& settings);

}  // namespace stowage
