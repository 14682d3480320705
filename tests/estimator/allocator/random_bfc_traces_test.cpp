// BfcAllocator against the naive one: random traces, all figures after every operation.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <string>

#include "tests/estimator/allocator/naive_bfc_allocator.hpp"

namespace stowage {

namespace {

std::string bfc_figures(const AllocatorStatistics& s) {
  return fmt::format(
      "allocated {} {} requested {} {} reserved {} {} split {} {} regions {} {} retries {} ooms {} "
      "device {} {}",
      s.allocated.current.count(), s.allocated.peak.count(), s.requested.current.count(),
      s.requested.peak.count(), s.reserved.current.count(), s.reserved.peak.count(),
      s.inactive_split.current.count(), s.inactive_split.peak.count(), s.segments.current,
      s.segments.peak, s.alloc_retries, s.ooms, s.device_allocations, s.device_releases);
}

Bytes random_bfc_size(std::mt19937& random) {
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  switch (pick(0, 5)) {
    case 0:
      return Bytes(pick(1, 2000));
    case 1:
      return Bytes(pick(1, 1 << 20));
    case 2:
      return Bytes(pick(1 << 20, 8 << 20));
    case 3:
      return Bytes(pick(0, 9) > 0 ? pick(8 << 20, 150 << 20) : pick(150 << 20, 900 << 20));
    default:
      return Bytes((std::int64_t{256} << pick(0, 18)) + pick(-1, 1) * 256 + pick(1, 256));
  }
}

struct BfcOutcome {
  std::int64_t ooms = 0, retries = 0;
};

BfcOutcome race_bfc(const BfcSettings& settings, Bytes total, Bytes in_use = {}) {
  BfcOutcome sum;
  for (std::uint32_t seed = 1; seed <= 4; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto pick = [&](int low, int high) {
      return std::uniform_int_distribution<int>(low, high)(random);
    };
    DeviceMemory device(total, in_use);
    BfcAllocator allocator(settings, device);
    NaiveBfcAllocator naive(settings, total, in_use);
    std::vector<std::pair<BlockId, int>> live;
    for (int i = 0; i < 4000; ++i) {
      CAPTURE(i);
      // Now and then nearly all is freed, so that whole regions are.
      const bool draining = i % 500 > 400;
      if (live.empty() || pick(0, 99) < (draining ? 1 : 55)) {
        const Bytes bytes = random_bfc_size(random);
        const auto chunk = allocator.allocate(bytes);
        const int handle = naive.allocate(bytes);
        REQUIRE(chunk.has_value() == (handle >= 0));
        if (chunk) live.emplace_back(*chunk, handle);
      } else {
        const auto index = static_cast<std::size_t>(pick(0, static_cast<int>(live.size()) - 1));
        allocator.free(live[index].first);
        naive.free(live[index].second);
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(index));
      }
      if (pick(0, 99) == 0) {
        allocator.reset_peaks();
        naive.reset_peaks();
      }
      REQUIRE(bfc_figures(allocator.statistics()) == bfc_figures(naive.statistics()));
    }
    sum.ooms += allocator.statistics().ooms;
    sum.retries += allocator.statistics().alloc_retries;
  }
  return sum;
}

}  // namespace

TEST_CASE("Random traces on BFC: the whole limit at once") {
  CHECK(race_bfc({.memory_limit = 64_GiB}, 80_GiB).ooms == 0);
  CHECK(race_bfc({.memory_limit = 1_GiB}, 2_GiB).ooms > 10);
  CHECK(race_bfc({.memory_limit = 1000000007_B, .fragmentation_fraction = 0.01}, 2_GiB).ooms > 10);
}

TEST_CASE("Random traces on BFC: growth") {
  CHECK(race_bfc({.memory_limit = 64_GiB, .allow_growth = true}, 80_GiB).ooms == 0);
  const BfcOutcome outcome = race_bfc({.memory_limit = 1500_MiB, .allow_growth = true}, 2_GiB);
  CHECK(outcome.ooms > 10);
  CHECK(outcome.retries > 3);
  const BfcSettings without{
      .memory_limit = 1500_MiB, .allow_growth = true, .garbage_collection = false};
  CHECK(race_bfc(without, 2_GiB).retries == 0);
}

TEST_CASE("Random traces on BFC: the driver has less than the limit") {
  CHECK(race_bfc({.memory_limit = 2_GiB}, 2_GiB, 700_MiB).ooms > 10);
  CHECK(race_bfc({.memory_limit = 2_GiB, .allow_growth = true}, 2_GiB, 700_MiB).ooms > 10);
}

}  // namespace stowage
