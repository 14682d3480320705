// CachingAllocator against the naive one: random traces, all figures after every operation.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <string>

#include "tests/estimator/allocator/naive_caching_allocator.hpp"

namespace stowage {

namespace {

struct Outcome {
  std::int64_t ooms = 0, retries = 0, early = 0;
  int collections = 0;
};

Bytes random_size(std::mt19937& random) {
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  constexpr std::int64_t edges[] = {512,      1 << 20,  2 << 20,  10 << 20, 20 << 20,
                                    40 << 20, 11 << 20, 19 << 20, 21 << 20, 64 << 20};
  switch (pick(0, 9)) {
    case 0:
      return Bytes(pick(1, 600));
    case 1:
    case 2:
      return Bytes(pick(600, 1 << 20));
    case 3:
    case 4:
      return Bytes(pick(1 << 20, 10 << 20));
    case 5:
    case 6:
      return Bytes(pick(10 << 20, 48 << 20));
    case 7:
      return Bytes(pick(48 << 20, 120 << 20));
    default:
      return Bytes(
          std::max<std::int64_t>(1, edges[pick(0, 9)] + pick(-2, 2) * (pick(0, 1) == 0 ? 1 : 512)));
  }
}

/// In words, so that a failure shows which figure it is.
std::string figures(const AllocatorStatistics& s) {
  return fmt::format(
      "allocated {} {} requested {} {} active {} {} reserved {} {} inactive {} {} segments {} {} "
      "retries {} ooms {} early {} device {} {} synchronizations {}",
      s.allocated.current.count(), s.allocated.peak.count(), s.requested.current.count(),
      s.requested.peak.count(), s.active.current.count(), s.active.peak.count(),
      s.reserved.current.count(), s.reserved.peak.count(), s.inactive_split.current.count(),
      s.inactive_split.peak.count(), s.segments.current, s.segments.peak, s.alloc_retries, s.ooms,
      s.early_refusals, s.device_allocations, s.device_releases, s.stream_synchronizations);
}

struct Pair {
  BlockId block;
  int handle = -1;
};

class Race {
 public:
  Race(const AllocatorSettings& settings, Bytes total, Bytes in_use, std::uint32_t seed)
      : device_(total, in_use),
        allocator_(settings, device_),
        naive_(settings, total, in_use),
        random_(seed) {}

  void run(int operations) {
    for (int i = 0; i < operations; ++i) {
      CAPTURE(i);
      operate();
      const AllocatorStatistics& now = allocator_.statistics();
      const AllocatorStatistics& expected = naive_.statistics();
      REQUIRE(figures(now) == figures(expected));
      if (i % 8 == 0 || i + 1 == operations) {
        const bool same_blocks = allocator_.snapshot() == naive_.snapshot();
        REQUIRE(same_blocks);
      }
      REQUIRE(device_.used() - device_.in_use_by_others() ==
              allocator_.statistics().reserved.current);
    }
  }

  [[nodiscard]] Outcome outcome() const {
    const AllocatorStatistics& now = allocator_.statistics();
    return {now.ooms, now.alloc_retries, now.early_refusals, naive_.collections()};
  }

 private:
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  void operate() {
    const int what = pick(0, 99);
    if (what < 48 || live_.empty()) {
      allocate();
    } else if (what < 82) {
      release(static_cast<std::size_t>(pick(0, static_cast<int>(live_.size()) - 1)));
    } else if (what < 90) {
      const Pair& pair =
          live_[static_cast<std::size_t>(pick(0, static_cast<int>(live_.size()) - 1))];
      const StreamId stream{pick(0, 2)};
      allocator_.record_stream(pair.block, stream);
      naive_.record_stream(pair.handle, stream);
    } else if (what < 97) {
      const StreamId stream{pick(0, 2)};
      allocator_.complete_events(stream);
      naive_.complete_events(stream);
    } else if (what < 98) {
      allocator_.empty_cache();
      naive_.empty_cache();
    } else {
      allocator_.reset_peaks();
      naive_.reset_peaks();
    }
  }

  void allocate() {
    const Bytes bytes = random_size(random_);
    const StreamId stream{std::max(0, pick(-3, 2))};
    const auto block = allocator_.allocate(bytes, stream);
    const int handle = naive_.allocate(bytes, stream);
    REQUIRE(block.has_value() == (handle >= 0));
    if (block) {
      live_.push_back({*block, handle});
      return;
    }
    const bool same_failure = block.error() == naive_.last_failure();
    REQUIRE(same_failure);
    for (int i = 0; i < 5 && !live_.empty(); ++i) release(live_.size() / 2);
  }

  void release(std::size_t index) {
    allocator_.free(live_[index].block);
    naive_.free(live_[index].handle);
    live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  DeviceMemory device_;
  CachingAllocator allocator_;
  NaiveCachingAllocator naive_;
  std::mt19937 random_;
  std::vector<Pair> live_;
};

Outcome race(const AllocatorSettings& settings, Bytes total, Bytes in_use = {}) {
  Outcome sum;
  for (std::uint32_t seed = 1; seed <= 3; ++seed) {
    CAPTURE(seed);
    Race race(settings, total, in_use, seed);
    race.run(3000);
    const Outcome outcome = race.outcome();
    sum.ooms += outcome.ooms;
    sum.retries += outcome.retries;
    sum.early += outcome.early;
    sum.collections += outcome.collections;
  }
  return sum;
}

}  // namespace

TEST_CASE("Random traces: defaults, on a large and on a small card") {
  CHECK(race({}, 64_GiB).ooms == 0);
  const Outcome small = race({}, 512_MiB, 60_MiB);
  CHECK(small.ooms > 10);
  CHECK(small.retries > small.ooms);
}

TEST_CASE("Random traces: max_split_size") {
  AllocatorSettings settings;
  for (const Bytes size : {20_MiB, 21_MiB, 40_MiB}) {
    settings.max_split_size = size;
    const Outcome outcome = race(settings, 600_MiB);
    CHECK(outcome.retries > 10);
    CHECK(outcome.ooms > 10);
  }
  settings.max_non_split_rounding = 64_MiB;
  CHECK(race(settings, 600_MiB).ooms > 10);
}

TEST_CASE("Random traces: divisions") {
  AllocatorSettings settings;
  settings.roundup_power2_divisions.fill(4);
  CHECK(race(settings, 600_MiB).ooms > 10);
  settings.roundup_power2_divisions = {8, 0, 4, 2, 1, 16, 2};
  CHECK(race(settings, 600_MiB).ooms > 10);
}

TEST_CASE("Random traces: fractions and garbage collection") {
  AllocatorSettings settings;
  settings.memory_fraction = 0.5;
  CHECK(race(settings, 1_GiB).ooms > 10);
  settings.garbage_collection_threshold = 0.6;
  const Outcome outcome = race(settings, 1_GiB);
  CHECK(outcome.collections > 10);
  CHECK(outcome.ooms > 10);
  settings.max_split_size = 24_MiB;
  CHECK(race(settings, 1_GiB).collections > 10);
}

TEST_CASE("Random traces: refused early") {
  AllocatorSettings settings;
  settings.refuse_early = true;
  const Outcome outcome = race(settings, 512_MiB);
  CHECK(outcome.early > 10);
  CHECK(race(settings, 512_MiB, 40_MiB).retries > 5);
}

TEST_CASE("Random traces: large segments of 12 MiB") {
  AllocatorSettings settings;
  settings.large_segment = 12_MiB;
  settings.max_split_size = 12_MiB;
  CHECK(race(settings, 512_MiB).ooms > 10);
}

TEST_CASE("Random traces: expandable segments") {
  AllocatorSettings settings;
  settings.expandable_segments = true;
  CHECK(race(settings, 64_GiB).ooms == 0);
  const Outcome small = race(settings, 512_MiB, 60_MiB);
  CHECK(small.ooms > 10);
  CHECK(small.retries > small.ooms);
  settings.large_segment = 12_MiB;
  settings.memory_fraction = 0.8;
  settings.garbage_collection_threshold = 0.5;
  settings.max_split_size = 32_MiB;
  CHECK(race(settings, 700_MiB).ooms > 10);
}

}  // namespace stowage
