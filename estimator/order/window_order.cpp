#include "estimator/order/window_order.hpp"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace stowage {
namespace {

using Mask = std::uint64_t;  // a bit a node of the window, by its place there

struct WindowItem {
  Bytes bytes;
  Mask touches = 0;
  bool begun = false;  // touched before the window
  bool stays = false;  // and after it
};

struct State {
  Mask done = 0;
  Bytes live;              // between two nodes
  Bytes peak;              // of the way here
  std::int32_t from = -1;  // the state on the level before
  std::int32_t node = -1;  // that ran since, by its place in the window
};

class Window {
 public:
  Window(const OrderProblem& problem, const std::vector<std::vector<std::int32_t>>& items_of,
         std::span<const std::int32_t> order, std::size_t begin, std::size_t count)
      : problem_(problem), nodes_(order.subspan(begin, count)), before_(count), items_of_(count) {
    std::unordered_map<std::int32_t, std::int32_t> place;
    for (std::size_t i = 0; i < order.size(); ++i) {
      place.emplace(order[i], static_cast<std::int32_t>(i));
    }
    find_needed(place, begin);
    find_items(place, items_of, begin);
  }

  WindowOrder run(std::size_t most_sets, Bytes below) {
    std::vector<std::vector<State>> levels{{State{0, start_, start_}}};
    for (std::size_t level = 0; level < nodes_.size(); ++level) {
      std::vector<State> next = expanded(levels.back(), below);
      if (next.empty()) return {};
      if (next.size() > most_sets) next.resize(most_sets);
      levels.push_back(std::move(next));
    }
    WindowOrder result{{}, levels.back().front().peak};
    std::int32_t at = 0;
    for (std::size_t level = levels.size(); level-- > 1;) {
      const State& state = levels[level][static_cast<std::size_t>(at)];
      result.nodes.push_back(nodes_[static_cast<std::size_t>(state.node)]);
      at = state.from;
    }
    std::ranges::reverse(result.nodes);
    return result;
  }

 private:
  using Places = std::unordered_map<std::int32_t, std::int32_t>;

  void find_needed(const Places& place, std::size_t begin) {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      for (const std::int32_t needed : problem_.before[static_cast<std::size_t>(nodes_[i])]) {
        const auto at = static_cast<std::size_t>(place.at(needed));
        if (at >= begin) before_[i] |= Mask{1} << (at - begin);
      }
    }
  }

  // Items that are live throughout the window and not touched in it are the same in all orders.
  void find_items(const Places& place, const std::vector<std::vector<std::int32_t>>& items_of,
                  std::size_t begin) {
    const auto first = static_cast<std::int32_t>(begin);
    const auto end = first + static_cast<std::int32_t>(nodes_.size());
    start_ = problem_.always;
    std::vector<std::int32_t> index(problem_.items.size(), -1);
    for (std::size_t s = 0; s < problem_.items.size(); ++s) {
      const OrderProblem::Item& item = problem_.items[s];
      WindowItem of{.bytes = item.bytes};
      for (const std::int32_t touch : item.touches) {
        const std::int32_t at = place.at(touch);
        of.begun = of.begun || at < first;
        of.stays = of.stays || at >= end;
        if (at >= first && at < end) of.touches |= Mask{1} << (at - first);
      }
      if (of.begun && (of.stays || of.touches != 0)) start_ += of.bytes;
      if (of.touches == 0) continue;
      index[s] = static_cast<std::int32_t>(items_.size());
      items_.push_back(of);
    }
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      for (const std::int32_t item : items_of[static_cast<std::size_t>(nodes_[i])]) {
        items_of_[i].push_back(index[static_cast<std::size_t>(item)]);
      }
    }
  }

  [[nodiscard]] State after(const State& state, std::int32_t from, std::size_t node) const {
    State next{state.done | Mask{1} << node, state.live, state.peak, from,
               static_cast<std::int32_t>(node)};
    Bytes ended;
    for (const std::int32_t i : items_of_[node]) {
      const WindowItem& item = items_[static_cast<std::size_t>(i)];
      if (!item.begun && (item.touches & state.done) == 0) next.live += item.bytes;
      if (!item.stays && (item.touches & ~next.done) == 0) ended += item.bytes;
    }
    const Bytes during = next.live + problem_.scratch[static_cast<std::size_t>(nodes_[node])];
    next.peak = std::max(state.peak, during);
    next.live -= ended;
    return next;
  }

  /// The best first; of equal ones that which comes first in the given order.
  [[nodiscard]] std::vector<State> expanded(const std::vector<State>& level, Bytes below) const {
    std::vector<State> next;
    std::unordered_map<Mask, std::size_t> known;
    for (std::size_t from = 0; from < level.size(); ++from) {
      for (std::size_t node = 0; node < nodes_.size(); ++node) {
        const State& state = level[from];
        if ((state.done >> node & 1) != 0 || (before_[node] & ~state.done) != 0) continue;
        const State reached = after(state, static_cast<std::int32_t>(from), node);
        if (reached.peak >= below) continue;
        const auto [found, is_new] = known.emplace(reached.done, next.size());
        if (is_new) {
          next.push_back(reached);
        } else if (reached.peak < next[found->second].peak) {
          next[found->second] = reached;
        }
      }
    }
    std::ranges::sort(next, {}, [](const State& state) {
      return std::tuple(state.peak, state.live, state.done);
    });
    return next;
  }

  const OrderProblem& problem_;
  std::span<const std::int32_t> nodes_;
  std::vector<Mask> before_;                         // by place in the window
  std::vector<std::vector<std::int32_t>> items_of_;  // likewise: into items_
  std::vector<WindowItem> items_;
  Bytes start_;  // live at the window's begin
};

}  // namespace

std::vector<std::vector<std::int32_t>> items_of_nodes(const OrderProblem& problem) {
  std::vector<std::vector<std::int32_t>> items(problem.scratch.size());
  for (std::size_t s = 0; s < problem.items.size(); ++s) {
    for (const std::int32_t touch : problem.items[s].touches) {
      items[static_cast<std::size_t>(touch)].push_back(static_cast<std::int32_t>(s));
    }
  }
  return items;
}

WindowOrder order_window(const OrderProblem& problem,
                         const std::vector<std::vector<std::int32_t>>& items_of,
                         std::span<const std::int32_t> order, std::size_t begin, std::size_t count,
                         std::size_t most_sets, Bytes below) {
  return Window(problem, items_of, order, begin, count).run(most_sets, below);
}

}  // namespace stowage
