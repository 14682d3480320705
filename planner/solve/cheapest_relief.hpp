// relieve_cheapest_first: frees memory by the moves that cost least for a byte.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <tuple>
#include <vector>

namespace stowage {

/// Makes moves until `excess()` is no longer positive. Each time it makes the move that costs least
/// for a byte that is still needed, so that a move that frees more than needed is charged its full
/// cost; moves without cost come first. False: there are no more moves, or `stop()`. A move has a
/// `cost` and positive `bytes` by which it lowers the excess; `make(move)` makes it.
///
/// As the excess falls a score can only rise. So a move with an outdated score lies in the heap too
/// early, never too late. O(moves * log(moves)) in practice.
template <typename Move, typename Excess, typename Make, typename Stop>
bool relieve_cheapest_first(const std::vector<Move>& moves, const Excess& excess, const Make& make,
                            const Stop& stop) {
  using Score = std::tuple<double, std::int64_t, std::size_t>;
  const auto score = [&](std::size_t i) {
    const auto cost = static_cast<double>(moves[i].cost);
    const std::int64_t useful = std::min<std::int64_t>(excess(), moves[i].bytes);
    return Score(cost > 0 ? cost / static_cast<double>(useful) : cost, -moves[i].bytes, i);
  };
  if (excess() <= 0) return true;
  std::vector<Score> heap;
  heap.reserve(moves.size());
  for (std::size_t i = 0; i < moves.size(); ++i) heap.push_back(score(i));
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  while (excess() > 0) {
    if (heap.empty() || stop()) return false;
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const std::size_t least = std::get<2>(heap.back());
    heap.back() = score(least);
    if (heap.size() > 1 && heap.front() < heap.back()) {
      std::push_heap(heap.begin(), heap.end(), std::greater<>());
      continue;
    }
    heap.pop_back();
    make(moves[least]);
  }
  return true;
}

}  // namespace stowage
