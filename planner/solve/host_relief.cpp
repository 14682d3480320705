#include "planner/solve/host_relief.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "planner/solve/cheapest_relief.hpp"

namespace stowage {
namespace {

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

struct HostMove {
  enum class Kind : std::uint8_t { keep_on_gpu, keep_on_cpu, other_device } kind;
  std::int32_t index = 0;  ///< of the item, of the operation
  double cost = 0;         ///< added, with the price of what it takes on the GPU
  std::int64_t bytes = 0;  ///< less on the host, at the place
};

class HostRelief {
 public:
  HostRelief(PlacementState& state, const PlacementIndex& index, const PriceSums<double>& prices,
             std::vector<char>& kept_on_gpu, std::int64_t& effort)
      : state_(state),
        problem_(state.problem()),
        index_(index),
        prices_(prices),
        kept_on_gpu_(kept_on_gpu),
        effort_(effort),
        place_(state.host()->worst()) {}

  bool run() {
    find_moves();
    return relieve_cheapest_first(
        moves_, [&] { return excess(); }, [&](const HostMove& move) { make(move); },
        [] { return false; });
  }

 private:
  [[nodiscard]] std::int64_t excess() const { return state_.host()->excess_at(place_); }

  void find_moves() {
    std::vector<std::int32_t> operations;
    for (std::int32_t i = 0; i < std::ssize(problem_.items); ++i) {
      if (!state_.host()->is_at(i, place_)) continue;
      measure({HostMove::Kind::keep_on_gpu, i});
      if (place_.pinned) measure({HostMove::Kind::keep_on_cpu, i});
      for (const Touch& touch : problem_.items[at(i)].touches) operations.push_back(touch.step);
    }
    std::sort(operations.begin(), operations.end());
    operations.erase(std::unique(operations.begin(), operations.end()), operations.end());
    for (const std::int32_t v : operations) {
      if (is_free(v)) measure({HostMove::Kind::other_device, v});
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

  // A move that no longer lowers the excess, since others did that before, is undone.
  void make(const HostMove& move) {
    const std::size_t mark = state_.mark();
    const std::int64_t before = excess();
    apply(move);
    if (excess() >= before) {
      state_.undo_to(mark);
    } else if (move.kind == HostMove::Kind::keep_on_gpu) {
      kept_on_gpu_[at(move.index)] = 1;
    }
  }

  void apply(const HostMove& move) {
    switch (move.kind) {
      case HostMove::Kind::keep_on_gpu:
        move_all(move.index, true);
        return keep(move.index);
      case HostMove::Kind::keep_on_cpu:
        return move_all(move.index, false);
      case HostMove::Kind::other_device: {
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
    const auto bytes = static_cast<double>(problem_.items[at(gap.item)].bytes.count());
    on_gpu_ += std::ldexp(prices_.in(gap.inside) * bytes, -state_.price_bits());
  }

  [[nodiscard]] bool is_free(std::int32_t operation) const {
    return problem_.operations[at(operation)].pin == Pin::free;
  }

  PlacementState& state_;
  const ResidencyProblem& problem_;
  const PlacementIndex& index_;
  const PriceSums<double>& prices_;
  std::vector<char>& kept_on_gpu_;
  std::int64_t& effort_;
  HostPlace place_;
  double on_gpu_ = 0;  // the price of what the gaps of a move take there
  std::vector<HostMove> moves_;
};

}  // namespace

bool relieve_host(PlacementState& state, const PlacementIndex& index,
                  const PriceSums<double>& prices, std::vector<char>& kept_on_gpu,
                  std::int64_t& effort) {
  return HostRelief(state, index, prices, kept_on_gpu, effort).run();
}

}  // namespace stowage
