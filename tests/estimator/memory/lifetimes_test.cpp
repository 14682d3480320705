#include "estimator/memory/lifetimes.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <random>

using namespace stowage;

namespace {

std::vector<std::int64_t> counts(const std::vector<Bytes>& live) {
  std::vector<std::int64_t> result;
  for (Bytes bytes : live) result.push_back(bytes.count());
  return result;
}

/// The definition in StorageUse's comments, one step at a time.
std::vector<std::int64_t> naive_live(const std::vector<StorageUse>& uses, std::int32_t steps) {
  std::vector<std::int64_t> live(static_cast<std::size_t>(steps));
  for (const StorageUse& use : uses) {
    for (std::int32_t t = 0; t < steps; ++t) {
      int copies = 0;
      if (use.whole_step) {
        copies = 1;
      } else if (!use.touches.empty()) {
        const bool after_first = use.from_start || t >= use.touches.front();
        const bool before_last = use.to_end || t <= use.touches.back();
        copies = after_first && before_last ? 1 : 0;
        if (t < use.previous_until) ++copies;
      }
      live[static_cast<std::size_t>(t)] += copies * use.bytes.count();
    }
  }
  return live;
}

}  // namespace

TEST_CASE("a storage lives from its first touch to its last") {
  const std::vector<StorageUse> uses = {{.bytes = 10_B, .touches = {2, 4}},
                                        {.bytes = 3_B, .touches = {1}}};
  const auto lived = lifetimes(uses, 6);
  REQUIRE(lived.size() == 2);
  CHECK(lived[0].use == 1);
  CHECK(lived[0].steps.begin == 1);
  CHECK(lived[0].steps.end == 2);
  CHECK(lived[1].use == 0);
  CHECK(lived[1].steps.begin == 2);
  CHECK(lived[1].steps.end == 5);
  CHECK(counts(live_bytes(lived, 6)) == std::vector<std::int64_t>{0, 3, 10, 10, 10, 0});
}

TEST_CASE("what is never touched takes nothing unless it is there for the whole step") {
  const std::vector<StorageUse> uses = {{.bytes = 10_B},
                                        {.bytes = 7_B, .whole_step = true},
                                        {.bytes = 1_B, .touches = {1}, .whole_step = true}};
  CHECK(counts(live_bytes(lifetimes(uses, 3), 3)) == std::vector<std::int64_t>{8, 8, 8});
  CHECK(lifetimes(uses, 0).empty());
}

TEST_CASE("an input is there from step 0 to its last touch") {
  const std::vector<StorageUse> uses = {{.bytes = 5_B, .touches = {1, 2}, .from_start = true}};
  CHECK(counts(live_bytes(lifetimes(uses, 4), 4)) == std::vector<std::int64_t>{5, 5, 5, 0});
}

TEST_CASE("what is held to the next step is there twice while it is replaced") {
  const std::vector<StorageUse> uses = {
      {.bytes = 5_B, .touches = {1, 2}, .to_end = true, .previous_until = 2}};
  CHECK(counts(live_bytes(lifetimes(uses, 4), 4)) == std::vector<std::int64_t>{5, 10, 5, 5});
}

TEST_CASE("a live sum past 64 bits throws; large storages one after the other do not") {
  const Bytes huge(std::numeric_limits<std::int64_t>::max());
  const std::vector<StorageUse> in_turn = {{.bytes = huge, .touches = {0}},
                                           {.bytes = huge, .touches = {1}}};
  CHECK(peak(live_bytes(lifetimes(in_turn, 2), 2)).bytes == huge);
  const std::vector<StorageUse> together = {{.bytes = huge, .touches = {0, 1}},
                                            {.bytes = huge, .touches = {1}}};
  CHECK_THROWS_AS((void)live_bytes(lifetimes(together, 2), 2), ArithmeticOverflow);
}

TEST_CASE("lifetimes agree with the definition on random uses") {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const auto steps = static_cast<std::int32_t>(1 + random() % 12);
    std::vector<StorageUse> uses(random() % 8);
    for (StorageUse& use : uses) {
      use.bytes = Bytes(static_cast<std::int64_t>(random() % 100));
      for (std::int32_t t = 0; t < steps; ++t) {
        if (random() % 4 == 0) use.touches.push_back(t);
      }
      use.whole_step = random() % 8 == 0;
      use.from_start = random() % 4 == 0;
      use.to_end = random() % 4 == 0;
      if (random() % 4 == 0) use.previous_until = static_cast<std::int32_t>(random() % (steps + 1));
    }
    const auto lived = lifetimes(uses, steps);
    CHECK(counts(live_bytes(lived, steps)) == naive_live(uses, steps));
    CHECK(counts(live_bytes(uses, steps)) == naive_live(uses, steps));
    for (std::int32_t t = 0; t < steps; ++t) {
      std::int64_t live = 0;
      for (const StorageUse& use : uses) live += copies_at(use, t) * use.bytes.count();
      CHECK(live == naive_live(uses, steps)[static_cast<std::size_t>(t)]);
    }
    for (std::size_t i = 1; i < lived.size(); ++i) {
      const auto key = [&](std::size_t k) { return std::pair(lived[k].steps.begin, lived[k].use); };
      CHECK(key(i - 1) <= key(i));
    }
  }
}
