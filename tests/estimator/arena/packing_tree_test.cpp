#include "estimator/arena/packing_tree.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "estimator/arena/capacity_search.hpp"
#include "tests/estimator/arena/arena_cases.hpp"

using namespace stowage;

namespace {

constexpr std::int64_t plenty = 50'000'000;

struct SearchEnd {
  TreeOutcome outcome = TreeOutcome::out_of_work;
  BlockOffsets packing;
};

/// A search in slices of work, as a race runs it.
SearchEnd search_tree(const ArenaBlocks& blocks, std::int64_t capacity, const Ranking& ranking,
                      std::int64_t slice = plenty) {
  const BlockSections sections = make_sections(blocks);
  const BitTable overlaps = make_overlaps(blocks);
  PackingTree tree(blocks, sections, overlaps, capacity, ranking);
  SearchEnd end;
  for (std::int64_t spent = 0; spent < plenty && end.outcome == TreeOutcome::out_of_work;
       spent += slice) {
    std::int64_t work = slice;
    end.outcome = tree.search(work);
  }
  if (end.outcome == TreeOutcome::found) end.packing = tree.packing();
  return end;
}

RankingSearch race(const ArenaBlocks& blocks, std::int64_t capacity, std::int64_t work = plenty) {
  return search_rankings_in_turn(blocks, make_sections(blocks), make_overlaps(blocks), capacity,
                                 work);
}

/// A rectangle of steps by capacity, cut into blocks until there are `count`: it packs without a
/// gap.
std::vector<ArenaRequest> jigsaw(std::mt19937& random, std::size_t count, std::int32_t steps,
                                 std::int64_t capacity) {
  std::vector<ArenaRequest> pieces = {{{{0, steps}}, Bytes(capacity)}};
  while (pieces.size() < count) {
    const std::size_t chosen = random() % pieces.size();
    ArenaRequest other = pieces[chosen];
    StepRange& left = pieces[chosen].live.front();
    StepRange& right = other.live.front();
    const std::int64_t bytes = other.bytes.count();
    if (random() % 2 == 0 && left.length() > 1) {
      const auto width = static_cast<std::uint32_t>(left.length() - 1);
      left.end = right.begin = left.begin + 1 + static_cast<std::int32_t>(random() % width);
    } else if (bytes > 1) {
      const std::int64_t lower = 1 + static_cast<std::int64_t>(random()) % (bytes - 1);
      pieces[chosen].bytes = Bytes(lower);
      other.bytes = Bytes(bytes - lower);
    } else {
      continue;
    }
    pieces.push_back(other);
  }
  std::shuffle(pieces.begin(), pieces.end(), random);
  return pieces;
}

}  // namespace

TEST_CASE("a tree search finds a packing exactly where there is one") {
  std::mt19937 random(29);
  for (int round = 0; round < 200; ++round) {
    const auto count = 2 + random() % 6;
    const ArenaProblem problem = make_problem(random_requests(random, count, 8, 12), 8);
    if (problem.requests.empty()) continue;
    const std::int64_t least = optimum(problem.requests);
    for (const Ranking& ranking : search_rankings) {
      for (const std::int64_t capacity : {least - 1, least, least + 3}) {
        const SearchEnd end = search_tree(problem.blocks, capacity, ranking);
        CAPTURE(round);
        CHECK(end.outcome == (capacity < least ? TreeOutcome::infeasible : TreeOutcome::found));
        if (end.outcome != TreeOutcome::found) continue;
        CHECK(end.packing.peak <= capacity);
        check_offsets(problem, end.packing);
      }
    }
  }
}

TEST_CASE("a tree search that is interrupted ends as one that is not") {
  std::mt19937 random(41);
  for (int round = 0; round < 20; ++round) {
    const ArenaProblem problem = make_problem(jigsaw(random, 14, 12, 40), 12);
    for (const std::int64_t capacity : {40, 39}) {
      const SearchEnd whole = search_tree(problem.blocks, capacity, search_rankings.front());
      const SearchEnd slices = search_tree(problem.blocks, capacity, search_rankings.front(), 50);
      CHECK(whole.outcome == (capacity == 40 ? TreeOutcome::found : TreeOutcome::infeasible));
      CHECK(slices.outcome == whole.outcome);
      CHECK(slices.packing.offset == whole.packing.offset);
    }
  }
}

TEST_CASE("a live sum above the capacity is infeasible without search") {
  const ArenaProblem problem = make_problem({{{{0, 2}}, 6_B}, {{{1, 3}}, 5_B}}, 3);
  const BlockSections sections = make_sections(problem.blocks);
  const BitTable overlaps = make_overlaps(problem.blocks);
  PackingTree tree(problem.blocks, sections, overlaps, 10, search_rankings.front());
  std::int64_t work = 1;
  CHECK(tree.search(work) == TreeOutcome::infeasible);
  CHECK(work == 1);
}

TEST_CASE("a packing above the live sum is proven to be the least") {
  // No packing of these is within the largest live sum, 11.
  const std::vector<ArenaRequest> requests = {
      {{{0, 2}}, 4_B}, {{{1, 4}}, 3_B},         {{{1, 2}}, 4_B},
      {{{3, 6}}, 4_B}, {{{2, 3}, {4, 5}}, 7_B}, {{{5, 7}}, 7_B},
  };
  const ArenaProblem problem = make_problem(requests, 7);
  const std::int64_t least = optimum(problem.requests);
  CHECK(least > problem.blocks.lower_bound);
  const BitTable overlaps = make_overlaps(problem.blocks);
  const BlockOffsets none{{}, std::int64_t{1} << 40};
  const TreePacking packed =
      search_trees(problem.blocks, overlaps, problem.blocks.lower_bound, plenty, none);
  CHECK(packed.best.peak == least);
  CHECK(packed.lowest == least);
  check_offsets(problem, packed.best);
}

TEST_CASE("rankings searched in turn pack jigsaw puzzles without a gap") {
  std::mt19937 random(7);
  for (int round = 0; round < 12; ++round) {
    const std::int32_t steps = 40;
    const ArenaProblem problem = make_problem(jigsaw(random, 45, steps, 1000), steps);
    CHECK(problem.blocks.lower_bound == 1000);
    const RankingSearch result = race(problem.blocks, 1000);
    REQUIRE(result.outcome == TreeOutcome::found);
    CHECK(result.packing.peak == 1000);
    check_offsets(problem, result.packing);
  }
}

TEST_CASE("rankings searched in turn stop when the work is spent") {
  std::mt19937 random(8);
  const ArenaProblem problem = make_problem(jigsaw(random, 60, 50, 1000), 50);
  CHECK(race(problem.blocks, 1000, 10).outcome == TreeOutcome::out_of_work);
}

TEST_CASE("parts of a problem that never meet are solved by themselves") {
  // Side by side in time: a search over all of them at once would try each part's packings again
  // for each packing of the parts before it.
  std::mt19937 random(19);
  std::vector<ArenaRequest> requests;
  const std::int32_t steps = 12, parts = 30;
  for (std::int32_t part = 0; part < parts; ++part) {
    for (ArenaRequest request : jigsaw(random, 14, steps, 40)) {
      request.live.front().begin += part * steps;
      request.live.front().end += part * steps;
      requests.push_back(request);
    }
  }
  const ArenaProblem problem = make_problem(requests, parts * steps);
  const RankingSearch result = race(problem.blocks, 40);
  REQUIRE(result.outcome == TreeOutcome::found);
  check_offsets(problem, result.packing);
}

TEST_CASE("a tree as deep as there are blocks is searched without recursion") {
  std::vector<ArenaRequest> requests;  // each lives within the one before it: nothing comes apart
  const std::int32_t count = 2000;
  requests.reserve(count);
  for (std::int32_t i = 0; i < count; ++i) requests.push_back({{{i, 2 * count - i}}, 1_B});
  const ArenaProblem problem = make_problem(requests, 2 * count);
  const SearchEnd end = search_tree(problem.blocks, count, search_rankings.front());
  REQUIRE(end.outcome == TreeOutcome::found);
  CHECK(end.packing.peak == count);
}
