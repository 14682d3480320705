#include "estimator/arena/place_conflict.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "tests/estimator/arena/arena_cases.hpp"

using namespace stowage;

namespace {

std::int64_t sum_at(const std::vector<ArenaRequest>& requests, std::int32_t step) {
  std::int64_t sum = 0;
  for (const ArenaRequest& request : requests) {
    for (const StepRange& range : request.live) {
      if (range.begin <= step && step < range.end) sum += request.bytes.count();
    }
  }
  return sum;
}

/// A parameter that stays over the step's end, its gradient, and activations that live through
/// both's places: 4 + 4 + 5 at no step, and yet no two of them may share a place.
std::vector<ArenaRequest> parameter_and_gradient() {
  return {{{{0, 4}, {9, 10}}, 4_B}, {{{6, 10}}, 4_B}, {{{2, 8}}, 5_B}};
}

}  // namespace

TEST_CASE("a block with two live ranges keeps its place free from blocks that meet both ranges") {
  const std::vector<ArenaRequest> requests = parameter_and_gradient();
  const ArenaBound bound = bound_arena(requests, 10_B, 1_B);
  CHECK(bound.lower_bound == 9_B);
  CHECK(bound.least_peak == 13_B);
  CHECK(pack_arena(requests, {.alignment = 1_B}).peak == 13_B);
}

TEST_CASE("the excess at a step is the three steps' sum without the bytes live at it") {
  const std::vector<ArenaRequest> requests = parameter_and_gradient();
  const ArenaBound bound = bound_arena(requests, 10_B, 1_B);
  // Where the activations meet the gradient, the parameter's 4 bytes cannot be used.
  REQUIRE(bound.excess[1].size() == 10);
  CHECK(sum_at(requests, 6) + bound.excess[1][6].count() == 13);
  REQUIRE(bound.excess[0].size() == 10);
  CHECK(sum_at(requests, 3) + bound.excess[0][3].count() == 13);
}

TEST_CASE("sums within the given peak have no excess") {
  const ArenaBound bound = bound_arena(parameter_and_gradient(), 13_B, 1_B);
  CHECK(bound.least_peak == 13_B);
  for (const auto& held : bound.excess) CHECK(held.empty());
}

TEST_CASE("blocks with one range each have no conflict beyond their sums") {
  std::mt19937 random(4);
  for (int round = 0; round < 30; ++round) {
    std::vector<ArenaRequest> requests = random_requests(random, 12, 20, 100);
    for (ArenaRequest& request : requests) {
      if (request.live.size() > 1) request.live.resize(1);
    }
    const ArenaBound bound = bound_arena(requests, 0_B, 1_B);
    CHECK(bound.least_peak == bound.lower_bound);
  }
}

TEST_CASE("no packing is below the least peak, and some sums are") {
  std::mt19937 random(17);
  int above_sums = 0;
  for (int round = 0; round < 200; ++round) {
    const auto requests = random_requests(random, 3 + random() % 4, 8, 30);
    const ArenaBound bound = bound_arena(requests, 0_B, 1_B);
    CHECK(bound.lower_bound.count() == naive_bound(requests, 1_B, 8));
    CHECK(bound.least_peak >= bound.lower_bound);
    CHECK(bound.least_peak.count() <= optimum(requests));
    above_sums += bound.least_peak > bound.lower_bound ? 1 : 0;
  }
  CHECK(above_sums > 0);
}
