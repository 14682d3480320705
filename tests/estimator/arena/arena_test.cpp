#include "estimator/arena/arena.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "estimator/arena/arena_search.hpp"
#include "estimator/arena/arena_tree.hpp"

using namespace stowage;

namespace {

bool live_together(const std::vector<StepRange>& a, const std::vector<StepRange>& b) {
  for (const StepRange& x : a) {
    for (const StepRange& y : b) {
      if (x.overlaps(y)) return true;
    }
  }
  return false;
}

/// Random requests over `steps` steps; every third has two ranges, one wraps round the end.
std::vector<ArenaRequest> random_requests(std::mt19937& random, std::size_t count,
                                          std::int32_t steps, std::int64_t largest) {
  std::vector<ArenaRequest> requests(count);
  for (ArenaRequest& request : requests) {
    request.bytes = Bytes(static_cast<std::int64_t>(random()) % largest);
    std::vector<std::int32_t> cuts(4);
    for (std::int32_t& cut : cuts) {
      cut = static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(steps + 1));
    }
    std::sort(cuts.begin(), cuts.end());
    switch (random() % 6) {
      case 0:
        request.live = {{0, cuts[1]}, {cuts[2], steps}};
        break;
      case 1:
        request.live = {{cuts[0], cuts[1]}, {cuts[2], cuts[3]}};
        break;
      case 2:
        request.live = {{0, steps}};
        break;
      default:
        request.live = {{cuts[0], cuts[1]}};
        break;
    }
  }
  return requests;
}

std::int64_t naive_bound(const std::vector<ArenaRequest>& requests, Bytes alignment,
                         std::int32_t steps) {
  std::int64_t largest = 0;
  for (std::int32_t t = 0; t < steps; ++t) {
    std::int64_t sum = 0;
    for (const ArenaRequest& request : requests) {
      if (live_together(request.live, {{t, t + 1}})) {
        sum += round_up(request.bytes, alignment).count();
      }
    }
    largest = std::max(largest, sum);
  }
  return largest;
}

void check_packing(const std::vector<ArenaRequest>& requests, const ArenaPacking& packing,
                   Bytes alignment, std::int32_t steps) {
  REQUIRE(packing.offsets.size() == requests.size());
  std::int64_t top = 0;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const std::int64_t begin = packing.offsets[i].count();
    const std::int64_t end = begin + round_up(requests[i].bytes, alignment).count();
    CHECK(begin >= 0);
    CHECK(begin % alignment.count() == 0);
    if (live_together(requests[i].live, {{0, steps}})) top = std::max(top, end);
    for (std::size_t j = 0; j < i; ++j) {
      const std::int64_t other = packing.offsets[j].count();
      const bool apart = end <= other || other + requests[j].bytes.count() <= begin;
      const bool empty = requests[i].bytes == 0_B || requests[j].bytes == 0_B;
      CHECK((apart || empty || !live_together(requests[i].live, requests[j].live)));
    }
  }
  CHECK(packing.peak.count() == top);
  CHECK(packing.lower_bound.count() == naive_bound(requests, alignment, steps));
  CHECK(packing.lower_bound <= packing.peak);
}

/// First fit over every order: one of them is optimal.
std::int64_t optimum(const std::vector<ArenaRequest>& requests) {
  std::vector<std::size_t> order(requests.size());
  std::iota(order.begin(), order.end(), 0);
  std::int64_t best = std::numeric_limits<std::int64_t>::max();
  do {
    std::vector<std::pair<std::size_t, std::int64_t>> placed;
    std::int64_t peak = 0;
    for (const std::size_t i : order) {
      if (!live_together(requests[i].live, {{0, 1'000}})) continue;
      std::int64_t at = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (const auto& [j, offset] : placed) {
          if (live_together(requests[i].live, requests[j].live) &&
              at < offset + requests[j].bytes.count() && offset < at + requests[i].bytes.count()) {
            at = offset + requests[j].bytes.count();
            moved = true;
          }
        }
      }
      placed.emplace_back(i, at);
      peak = std::max(peak, at + requests[i].bytes.count());
    }
    best = std::min(best, peak);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

}  // namespace

TEST_CASE("blocks that are never live together share their place") {
  const std::vector<ArenaRequest> requests = {{{{0, 2}}, 100_B}, {{{2, 4}}, 300_B}};
  const ArenaPacking packing = pack_arena(requests);
  CHECK(packing.offsets == std::vector<Bytes>{0_B, 0_B});
  CHECK(packing.peak == 512_B);
  CHECK(packing.lower_bound == 512_B);
}

TEST_CASE("a block with two ranges leaves its place to others in between") {
  const std::vector<ArenaRequest> requests = {{{{0, 2}, {4, 6}}, 10_B}, {{{2, 4}}, 10_B}};
  CHECK(pack_arena(requests, {.alignment = 1_B}).peak == 10_B);
}

TEST_CASE("nothing to place") {
  CHECK(pack_arena({}).peak == 0_B);
  const std::vector<ArenaRequest> requests = {{{{0, 5}}, 0_B}, {{}, 7_B}, {{{3, 3}}, 9_B}};
  const ArenaPacking packing = pack_arena(requests);
  CHECK(packing.offsets == std::vector<Bytes>(3));
  CHECK(packing.peak == 0_B);
}

TEST_CASE("sizes that do not add up in 64 bits throw") {
  const Bytes huge(std::int64_t{1} << 62);
  const std::vector<ArenaRequest> requests = {{{{0, 1}}, huge}, {{{0, 1}}, huge}};
  CHECK_THROWS_AS((void)pack_arena(requests), ArithmeticOverflow);
}

TEST_CASE("no two live blocks overlap on random requests, and the bound holds") {
  std::mt19937 random(11);
  for (int round = 0; round < 60; ++round) {
    const auto steps = static_cast<std::int32_t>(2 + random() % 30);
    const auto requests = random_requests(random, 1 + random() % 60, steps, 5000);
    const Bytes alignment(round % 3 == 0 ? 1 : 256);
    check_packing(requests, pack_arena(requests, {.alignment = alignment, .effort = 0}), alignment,
                  steps);
  }
}

TEST_CASE("small problems are packed optimally") {
  std::mt19937 random(5);
  for (int round = 0; round < 40; ++round) {
    const auto requests = random_requests(random, 2 + random() % 5, 8, 30);
    const ArenaPacking packing = pack_arena(requests, {.alignment = 1_B});
    check_packing(requests, packing, 1_B, 8);
    CHECK(packing.peak.count() == optimum(requests));
  }
}

TEST_CASE("the same requests give the same offsets") {
  std::mt19937 random(3);
  const auto requests = random_requests(random, 80, 40, 100'000);
  CHECK(pack_arena(requests).offsets == pack_arena(requests).offsets);
}

TEST_CASE("more effort is never worse") {
  std::mt19937 random(21);
  for (int round = 0; round < 4; ++round) {
    const auto requests = random_requests(random, 120, 60, 100'000);
    CHECK(pack_arena(requests, {.alignment = 1_B}).peak <=
          pack_arena(requests, {.alignment = 1_B, .effort = 0}).peak);
  }
}

TEST_CASE("the shape of a training step is packed to its lower bound") {
  // Activations appear forward and go backward, each with its gradient; weights stay.
  std::vector<ArenaRequest> requests;
  const std::int32_t layers = 400, steps = 2 * layers;
  std::mt19937 random(2);
  for (std::int32_t i = 0; i < layers; ++i) {
    const Bytes bytes(static_cast<std::int64_t>(1000 + random() % 100'000));
    requests.push_back({{{0, steps}}, Bytes(static_cast<std::int64_t>(random() % 50'000))});
    requests.push_back({{{i, steps - i}}, bytes});
    requests.push_back({{{steps - i - 1, std::min(steps - i + 1, steps)}}, bytes});
  }
  const ArenaPacking packing = pack_arena(requests);
  check_packing(requests, packing, arena_alignment, steps);
  CHECK(packing.peak == packing.lower_bound);
}

TEST_CASE("the tree search finds a packing exactly where there is one") {
  std::mt19937 random(29);
  for (int round = 0; round < 150; ++round) {
    ArenaBlocks blocks;
    blocks.steps = 8;
    std::vector<ArenaRequest> requests;
    for (const ArenaRequest& request : random_requests(random, 2 + random() % 5, 8, 12)) {
      ArenaRequest kept{{}, request.bytes + 1_B};
      for (const StepRange& range : request.live) {
        if (range.begin < range.end) kept.live.push_back(range);
      }
      if (kept.live.empty()) continue;
      requests.push_back(kept);
      blocks.size.push_back(kept.bytes.count());
      blocks.live.push_back(kept.live);
    }
    if (requests.empty()) continue;
    std::vector<std::int32_t> preference(requests.size());
    std::iota(preference.begin(), preference.end(), 0);
    std::shuffle(preference.begin(), preference.end(), random);
    const BlockSections sections = make_sections(blocks);
    const std::int64_t least = optimum(requests);
    for (const std::int64_t capacity : {least - 1, least, least + 3}) {
      std::int64_t work = 10'000'000;
      const auto found = tree_packing(blocks, sections, capacity, preference, work);
      CHECK(work > 0);
      CHECK(found.has_value() == (capacity >= least));
      if (!found) continue;
      CHECK(found->peak <= capacity);
      ArenaPacking packing{{}, Bytes(found->peak), Bytes(naive_bound(requests, 1_B, 8))};
      for (const std::int64_t offset : found->offset) packing.offsets.push_back(Bytes(offset));
      check_packing(requests, packing, 1_B, 8);
    }
  }
}

TEST_CASE("the sweep for very many blocks keeps live blocks apart") {
  std::mt19937 random(13);
  for (int round = 0; round < 100; ++round) {
    const std::int32_t steps = 20;
    ArenaBlocks blocks;
    blocks.steps = steps;
    std::vector<ArenaRequest> requests;
    for (const ArenaRequest& request : random_requests(random, 40, steps, 1000)) {
      ArenaRequest kept{{}, request.bytes};
      for (const StepRange& range : request.live) {
        if (range.begin < range.end) kept.live.push_back(range);
      }
      if (kept.live.empty() || kept.bytes == 0_B) continue;
      requests.push_back(kept);
      blocks.size.push_back(kept.bytes.count());
      blocks.live.push_back(kept.live);
    }
    const BlockOffsets placed = sweep_packing(blocks);
    ArenaPacking packing;
    packing.peak = Bytes(placed.peak);
    packing.lower_bound = Bytes(naive_bound(requests, 1_B, steps));
    std::int64_t top = 0;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      packing.offsets.push_back(Bytes(placed.offset[i]));
      top = std::max(top, placed.offset[i] + requests[i].bytes.count());
    }
    packing.peak = Bytes(top);
    CHECK(placed.peak >= top);
    check_packing(requests, packing, 1_B, steps);
  }
}
