#include "estimator/arena/arena.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "estimator/arena/sweep_packing.hpp"
#include "tests/estimator/arena/arena_cases.hpp"

using namespace stowage;

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

TEST_CASE("a packing that is known is found again without effort, and so is one of shorter lives") {
  std::mt19937 random(23);
  int better = 0;
  for (int round = 0; round < 60; ++round) {
    auto requests = random_requests(random, 20 + random() % 40, 20, 5000);
    const ArenaPacking known = pack_arena(requests, {.effort = 1});
    for (ArenaRequest& request : requests) {
      if (random() % 3 == 0 && request.live.back().length() > 1) --request.live.back().end;
    }
    const ArenaPacking near = pack_arena(requests, {.effort = 0, .similar_offsets = known.offsets});
    check_packing(requests, near, 256_B, 20);
    CHECK(near.peak <= known.peak);
    if (near.peak < pack_arena(requests, {.effort = 0}).peak) ++better;
  }
  CHECK(better > 5);
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

TEST_CASE("the sweep for very many blocks keeps live blocks apart") {
  std::mt19937 random(13);
  for (int round = 0; round < 100; ++round) {
    const std::int32_t steps = 20;
    const ArenaProblem problem = make_problem(random_requests(random, 40, steps, 1000), steps);
    BlockOffsets placed = sweep_packing(problem.blocks);
    std::int64_t top = 0;
    for (std::size_t i = 0; i < problem.blocks.count(); ++i) {
      top = std::max(top, placed.offset[i] + problem.blocks.size[i]);
    }
    CHECK(placed.peak >= top);
    placed.peak = top;
    check_offsets(problem, placed);
  }
}
