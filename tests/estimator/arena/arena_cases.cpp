#include "tests/estimator/arena/arena_cases.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <numeric>

namespace stowage {
namespace {

bool live_together(const std::vector<StepRange>& a, const std::vector<StepRange>& b) {
  for (const StepRange& x : a) {
    for (const StepRange& y : b) {
      if (x.overlaps(y)) return true;
    }
  }
  return false;
}

}  // namespace

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

ArenaProblem make_problem(const std::vector<ArenaRequest>& requests, std::int32_t steps) {
  ArenaProblem problem;
  problem.blocks.steps = steps;
  for (const ArenaRequest& request : requests) {
    ArenaRequest kept{{}, request.bytes};
    std::int64_t duration = 0;
    for (const StepRange& range : request.live) {
      if (range.empty()) continue;
      kept.live.push_back(range);
      duration += range.length();
    }
    if (kept.live.empty() || kept.bytes == 0_B) continue;
    problem.requests.push_back(kept);
    problem.blocks.size.push_back(kept.bytes.count());
    problem.blocks.live.push_back(kept.live);
    problem.blocks.duration.push_back(duration);
  }
  problem.blocks.lower_bound = naive_bound(problem.requests, 1_B, steps);
  return problem;
}

void check_offsets(const ArenaProblem& problem, const BlockOffsets& placed) {
  ArenaPacking packing{{}, Bytes(placed.peak), Bytes(problem.blocks.lower_bound)};
  for (const std::int64_t offset : placed.offset) packing.offsets.push_back(Bytes(offset));
  check_packing(problem.requests, packing, 1_B, problem.blocks.steps);
}

}  // namespace stowage
