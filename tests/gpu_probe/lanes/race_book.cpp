#include "tests/gpu_probe/lanes/race_book.hpp"

#include <algorithm>

namespace stowage::test {

bool RaceBook::acquire(Actor actor, const VectorClock& clock) {
  VectorClock& mine = clocks_[index(actor)];
  bool learnt = false;
  for (std::size_t i = 0; i < actor_count; ++i) {
    learnt = learnt || clock[i] > mine[i];
    mine[i] = std::max(mine[i], clock[i]);
  }
  return learnt;
}

void RaceBook::access(Actor actor, const std::byte* begin, std::int64_t bytes, bool writes,
                      const std::string& what) {
  if (bytes == 0) return;
  const std::byte* const end = begin + bytes;
  VectorClock& mine = clocks_[index(actor)];
  std::erase_if(accesses_, [&](const Access& earlier) {
    if (earlier.end <= begin || end <= earlier.begin) return false;
    const bool in_order = earlier.time <= mine[index(earlier.actor)];
    if (!in_order && (writes || earlier.writes)) {
      races_.push_back(what + " beside " + earlier.what);
    }
    // An access that is in order with a write of all these bytes is in order with everything before
    // it.
    return in_order && writes && begin <= earlier.begin && earlier.end <= end;
  });
  accesses_.push_back({actor, ++mine[index(actor)], begin, end, writes, what});
}

void RaceBook::forget(const std::byte* begin, std::int64_t bytes) {
  const std::byte* const end = begin + bytes;
  std::erase_if(accesses_,
                [&](const Access& access) { return begin <= access.begin && access.end <= end; });
}

}  // namespace stowage::test
