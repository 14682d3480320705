#include "planner/solve/host_relief.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <tuple>

namespace stowage {
namespace {

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

struct HostMove {
  enum class Kind : std::uint8_t { home, away, side } kind;
  std::int32_t index = 0;  ///< of the item, of the operation
  double cost = 0;         ///< added, with the price of what it takes on the GPU
  std::int64_t bytes = 0;  ///< less on the host, at the place
};

class HostRelief {
 public:
  HostRelief(PlacementState& state, const PlacementIndex& index,
             const std::vector<double>& price_before, std::vector<char>& home, std::int64_t& effort)
      : state_(state),
        problem_(state.problem()),
        index_(index),
        price_before_(price_before),
        home_(home),
        effort_(effort),
        place_(state.host()->worst()) {}

  // The scores fall behind as moves are made, as those of relieve() do: bytes that are no longer
  // needed make a score worse, so one that is out of date comes too early, never too late.
  bool run() {
    find_moves();
    using Score = std::tuple<double, std::int64_t, std::size_t>;
    const auto score = [&](std::size_t i) {
      const std::int64_t useful = std::min(excess(), moves_[i].bytes);
      const double cost = moves_[i].cost;
      return Score(cost > 0 ? cost / static_cast<double>(useful) : cost, -moves_[i].bytes, i);
    };
    std::vector<Score> heap;
    for (std::size_t i = 0; i < moves_.size(); ++i) heap.push_back(score(i));
    std::make_heap(heap.begin(), heap.end(), std::greater<>());
    while (excess() > 0) {
      if (heap.empty()) return false;
      std::pop_heap(heap.begin(), heap.end(), std::greater<>());
      const std::size_t least = std::get<2>(heap.back());
      heap.back() = score(least);
      if (heap.size() > 1 && heap.front() < heap.back()) {
        std::push_heap(heap.begin(), heap.end(), std::greater<>());
        continue;
      }
      heap.pop_back();
      make(moves_[least]);
    }
    return true;
  }

 private:
  [[nodiscard]] std::int64_t excess() const { return state_.host()->excess_at(place_); }

  void find_moves() {
    std::vector<std::int32_t> operations;
    for (std::int32_t i = 0; i < std::ssize(problem_.items); ++i) {
      if (!state_.host()->is_at(i, place_)) continue;
      measure({HostMove::Kind::home, i});
      if (place_.pinned) measure({HostMove::Kind::away, i});
      for (const Touch& touch : problem_.items[at(i)].touches) operations.push_back(touch.step);
    }
    std::sort(operations.begin(), operations.end());
    operations.erase(std::unique(operations.begin(), operations.end()), operations.end());
    for (const std::int32_t v : operations) {
      if (is_free(v)) measure({HostMove::Kind::side, v});
    }
  }

  void measure(HostMove move) {
    const std::size_t mark = state_.mark();
    const Capacity cost = state_.cost();
    const std::int64_t before = excess();
    on_gpu_ = 0;
    apply(move);
    move.cost = static_cast<double>(state_.cost() - cost) + on_gpu_;
    move.bytes = before - excess();
    effort_ -= static_cast<std::int64_t>(state_.mark() - mark) + 1;
    state_.undo_to(mark);
    if (move.bytes > 0) moves_.push_back(move);
  }

  // What it promises may have been done by others before it: then it is not made.
  void make(const HostMove& move) {
    const std::size_t mark = state_.mark();
    const std::int64_t before = excess();
    apply(move);
    if (excess() >= before) {
      state_.undo_to(mark);
    } else if (move.kind == HostMove::Kind::home) {
      home_[at(move.index)] = 1;
    }
  }

  void apply(const HostMove& move) {
    switch (move.kind) {
      case HostMove::Kind::home:
        move_all(move.index, true);
        return keep(move.index);
      case HostMove::Kind::away:
        return move_all(move.index, false);
      case HostMove::Kind::side: {
        const bool to_gpu = !state_.on_gpu(move.index);
        state_.move(move.index, to_gpu);
        if (!to_gpu) return;
        for (const std::int32_t g : index_.gaps_beside(move.index)) keep_gap(g);
      }
    }
  }

  void move_all(std::int32_t item, bool to_gpu) {
    for (const Touch& touch : problem_.items[at(item)].touches) {
      if (is_free(touch.step)) state_.move(touch.step, to_gpu);
    }
  }

  void keep(std::int32_t item) {
    const Item& of = problem_.items[at(item)];
    for (std::int32_t gap = 0; gap < gap_count(of); ++gap) keep_gap(index_.first_gap(item) + gap);
  }

  void keep_gap(std::int32_t place) {
    const GapPlace& gap = state_.gaps()[at(place)];
    if (state_.resident(gap) || !state_.may_be_resident(gap)) return;
    state_.flip(gap);
    const auto& [within, wrapped] = gap.inside;
    const double price = price_before_[at(within.end)] - price_before_[at(within.begin)] +
                         price_before_[at(wrapped.end)];
    const auto bytes = static_cast<double>(problem_.items[at(gap.item)].bytes.count());
    on_gpu_ += std::ldexp(price * bytes, -state_.price_bits());
  }

  [[nodiscard]] bool is_free(std::int32_t operation) const {
    return problem_.operations[at(operation)].pin == Pin::free;
  }

  PlacementState& state_;
  const ResidencyProblem& problem_;
  const PlacementIndex& index_;
  const std::vector<double>& price_before_;
  std::vector<char>& home_;
  std::int64_t& effort_;
  HostPlace place_;
  double on_gpu_ = 0;  // the price of what the gaps of a move take there
  std::vector<HostMove> moves_;
};

}  // namespace

bool relieve_host(PlacementState& state, const PlacementIndex& index,
                  const std::vector<double>& price_before, std::vector<char>& home,
                  std::int64_t& effort) {
  return HostRelief(state, index, price_before, home, effort).run();
}

}  // namespace stowage
