#include "estimator/allocator/allocator_settings.hpp"

#include <doctest/doctest.h>

#include "estimator/base/largest_memory.hpp"

namespace stowage {

namespace {

AllocatorSettings with_divisions(std::int64_t divisions) {
  AllocatorSettings settings;
  settings.roundup_power2_divisions.fill(divisions);
  return settings;
}

}  // namespace

TEST_CASE("Sizes are rounded to 512 bytes") {
  const AllocatorSettings settings;
  CHECK(rounded_size(1_B, settings) == 512_B);
  CHECK(rounded_size(511_B, settings) == 512_B);
  CHECK(rounded_size(512_B, settings) == 512_B);
  CHECK(rounded_size(513_B, settings) == 1024_B);
  CHECK(rounded_size(8519680_B, settings) == 8519680_B);
  CHECK(rounded_size(1048577_B, settings) == 1049088_B);
}

TEST_CASE("Divisions between powers of two") {
  // PyTorch's own example: 1200 with 4 divisions lies between 1024 and 2048; the steps are 1280,
  // 1536, 1792, 2048. It is too small for them: 1200 <= 512 * 4.
  CHECK(rounded_size(1200_B, with_divisions(4)) == 1536_B);
  CHECK(rounded_size(1200_KiB, with_divisions(4)) == 1280_KiB);
  CHECK(rounded_size(1281_KiB, with_divisions(4)) == 1536_KiB);
  CHECK(rounded_size(1537_KiB, with_divisions(4)) == 1792_KiB);
  CHECK(rounded_size(1793_KiB, with_divisions(4)) == 2_MiB);
  // Powers of two stay.
  CHECK(rounded_size(2_MiB, with_divisions(4)) == 2_MiB);
  CHECK(rounded_size(2097153_B, with_divisions(4)) == 2560_KiB);
  // 512 * divisions and less: to 512 bytes.
  CHECK(rounded_size(2048_B, with_divisions(4)) == 2048_B);
  CHECK(rounded_size(1800_B, with_divisions(4)) == 2048_B);
  CHECK(rounded_size(2049_B, with_divisions(4)) == 2560_B);
  CHECK(rounded_size(3000_B, with_divisions(4)) == 3072_B);
  // Two divisions of 4096 to 8192 are 6144 and 8192; one and none mean no division.
  CHECK(rounded_size(4097_B, with_divisions(2)) == 6144_B);
  CHECK(rounded_size(6145_B, with_divisions(2)) == 8192_B);
  CHECK(rounded_size(4097_B, with_divisions(1)) == 4608_B);
  CHECK(rounded_size(4097_B, with_divisions(0)) == 4608_B);
}

TEST_CASE("Divisions go by the power of two at or below the size") {
  AllocatorSettings settings;
  settings.roundup_power2_divisions[0] = 2;   // up to 2 MiB
  settings.roundup_power2_divisions[4] = 8;   // 16 MiB to 32 MiB
  settings.roundup_power2_divisions[15] = 4;  // from 32 GiB
  CHECK(rounded_size(5_KiB, settings) == 6_KiB);
  CHECK(rounded_size(1025_KiB, settings) == 1536_KiB);
  CHECK(rounded_size(3000001_B, settings) == 3000320_B);
  CHECK(rounded_size(17_MiB, settings) == 18_MiB);
  CHECK(rounded_size(33_MiB, settings) == 33_MiB);
  CHECK(rounded_size(33_GiB, settings) == 40_GiB);
  CHECK(rounded_size(200_GiB, settings) == 224_GiB);
}

TEST_CASE("More divisions than a size has bytes are none") {
  const AllocatorSettings settings = with_divisions(std::int64_t{1} << 54);
  CHECK(rounded_size(1800_B, settings) == 2048_B);
  CHECK(rounded_size(largest_memory - 1_B, settings) == largest_memory);
}

TEST_CASE("Segments by the rounded size") {
  AllocatorSettings settings;
  CHECK(segment_size(512_B, settings) == 2_MiB);
  CHECK(segment_size(1_MiB, settings) == 2_MiB);
  CHECK(segment_size(1049088_B, settings) == 20971520_B);
  CHECK(segment_size(10485248_B, settings) == 20_MiB);
  CHECK(segment_size(10_MiB, settings) == 10_MiB);
  CHECK(segment_size(10486272_B, settings) == 12_MiB);
  CHECK(segment_size(33554432_B, settings) == 32_MiB);
  settings.large_segment = 12_MiB;
  CHECK(segment_size(2_MiB, settings) == 12_MiB);
  CHECK(segment_size(10_MiB, settings) == 10_MiB);
}

}  // namespace stowage
