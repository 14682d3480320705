#include "estimator/allocator/free_blocks.hpp"

#include <doctest/doctest.h>

#include <random>
#include <set>

namespace stowage {

namespace {

FreeBlock block_of(std::int32_t stream, std::int64_t size, std::int64_t address) {
  return {StreamId{stream}, Bytes(size), address,
          BlockId::of(static_cast<std::size_t>(address % 7))};
}

const FreeBlock* pointer(const std::set<FreeBlock>& set, std::set<FreeBlock>::const_iterator at) {
  return at == set.end() ? nullptr : &*at;
}

bool same(const FreeBlock* a, const FreeBlock* b) {
  return a == nullptr || b == nullptr ? a == b : *a == *b;
}

}  // namespace

TEST_CASE("the smallest that is large enough comes first, of equal ones the lowest") {
  FreeBlocks free;
  CHECK(free.first_after(block_of(0, 0, -1)) == nullptr);
  CHECK(free.last_before(block_of(9, 0, -1)) == nullptr);
  CHECK(free.last() == nullptr);
  for (const FreeBlock& block :
       {block_of(0, 1024, 8), block_of(0, 512, 4), block_of(0, 512, 2), block_of(1, 512, 0)}) {
    free.insert(block);
  }
  CHECK(*free.first_after(block_of(0, 512, -1)) == block_of(0, 512, 2));
  CHECK(*free.first_after(block_of(0, 513, -1)) == block_of(0, 1024, 8));
  CHECK(*free.first_after(block_of(0, 2048, -1)) == block_of(1, 512, 0));
  CHECK(*free.last_before(block_of(1, 0, -1)) == block_of(0, 1024, 8));
  free.replace(block_of(0, 1024, 8), block_of(0, 600, 9));
  CHECK(free.in_order() == std::vector{block_of(0, 512, 2), block_of(0, 512, 4),
                                       block_of(0, 600, 9), block_of(1, 512, 0)});
  free.replace(block_of(0, 600, 9), block_of(0, 256, 9));
  CHECK(free.in_order().front() == block_of(0, 256, 9));
}

TEST_CASE("free blocks are those of an ordered set, whatever comes and goes") {
  std::mt19937 random(17);
  const auto drawn = [&](std::uint32_t below) {
    return static_cast<std::int64_t>(random() % below);
  };
  FreeBlocks free;
  std::set<FreeBlock> naive;
  for (std::int64_t step = 0; step < 40'000; ++step) {
    // Growing at first, then shrinking, through many runs and down to none.
    const bool grows = drawn(100) < (step < 20'000 ? 60 : 40);
    const FreeBlock fresh = block_of(static_cast<std::int32_t>(drawn(2)), 512 * drawn(40), step);
    const FreeBlock sought =
        block_of(static_cast<std::int32_t>(drawn(3)), 512 * drawn(42), drawn(40'000) - 1);
    const FreeBlock* found = free.first_after(sought);
    REQUIRE(same(found, pointer(naive, naive.upper_bound(sought))));
    const auto from = naive.lower_bound(sought);
    const FreeBlock* before = from == naive.begin() ? nullptr : &*std::prev(from);
    REQUIRE(same(free.last_before(sought), before));
    if (grows || found == nullptr) {
      free.insert(fresh);
      naive.insert(fresh);
      continue;
    }
    const FreeBlock gone = *found;
    naive.erase(gone);
    if (drawn(2) == 0) {
      free.erase(gone);
    } else {
      free.replace(gone, fresh);
      naive.insert(fresh);
    }
  }
  CHECK(free.in_order() == std::vector(naive.begin(), naive.end()));
  CHECK(same(free.last(), naive.empty() ? nullptr : &*naive.rbegin()));
  while (!naive.empty()) {
    free.erase(*naive.begin());
    naive.erase(naive.begin());
  }
  CHECK(free.in_order().empty());
}

}  // namespace stowage
