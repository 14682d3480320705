#include "estimator/order/lower_peak.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "estimator/base/live_sum.hpp"
#include "estimator/order/window_order.hpp"

namespace stowage {
namespace {

using Order = std::vector<std::int32_t>;

constexpr std::size_t most_nodes_listed = 10'000;
constexpr std::size_t window = 48;

std::size_t at(std::int32_t node) { return static_cast<std::size_t>(node); }

std::vector<std::vector<std::int32_t>> reversed_edges(
    const std::vector<std::vector<std::int32_t>>& before) {
  std::vector<std::vector<std::int32_t>> after(before.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    for (const std::int32_t needed : before[i]) {
      after[at(needed)].push_back(static_cast<std::int32_t>(i));
    }
  }
  return after;
}

/// The step run backwards: an item is live between the same two touches.
OrderProblem backwards(const OrderProblem& problem) {
  OrderProblem result = problem;
  const auto last = static_cast<std::int32_t>(problem.before.size()) - 1;
  const auto reverse_steps = [&](std::vector<std::int32_t>& nodes) {
    for (std::int32_t& node : nodes) node = last - node;
    std::ranges::sort(nodes);
  };
  std::ranges::reverse(result.scratch);
  for (OrderProblem::Item& item : result.items) reverse_steps(item.touches);
  result.before = reversed_edges(problem.before);
  for (std::vector<std::int32_t>& nodes : result.before) reverse_steps(nodes);
  std::ranges::reverse(result.before);
  return result;
}

/// A list schedule from the front.
class Listing {
 public:
  explicit Listing(const OrderProblem& problem)
      : problem_(problem),
        items_of_(items_of_nodes(problem)),
        after_(reversed_edges(problem.before)),
        live_(problem.always),
        peak_(problem.always) {
    for (const OrderProblem::Item& item : problem.items) untouched_.push_back(item.touches.size());
    for (std::size_t i = 0; i < problem.before.size(); ++i) {
      waits_.push_back(problem.before[i].size());
      if (waits_.back() == 0) ready_.insert(static_cast<std::int32_t>(i));
    }
  }

  Order run() && {
    Order order;
    while (!ready_.empty()) {
      const std::int32_t node =
          *std::ranges::min_element(ready_, {}, [&](std::int32_t ready) { return rank(ready); });
      take(node);
      order.push_back(node);
    }
    return order;
  }

 private:
  struct Change {
    Bytes begins, ends;
  };
  [[nodiscard]] Change change_by(std::int32_t node) const {
    Change change;
    for (const std::int32_t i : items_of_[at(node)]) {
      const OrderProblem::Item& item = problem_.items[at(i)];
      if (untouched_[at(i)] == item.touches.size()) change.begins += item.bytes;
      if (untouched_[at(i)] == 1) change.ends += item.bytes;
    }
    return change;
  }

  [[nodiscard]] std::tuple<Bytes, std::int64_t, std::int32_t> rank(std::int32_t node) const {
    const Change change = change_by(node);
    const Bytes during = live_ + change.begins + problem_.scratch[at(node)];
    return {std::max(during, peak_), change.begins.count() - change.ends.count(), node};
  }

  void take(std::int32_t node) {
    const Change change = change_by(node);
    peak_ = std::max(peak_, live_ + change.begins + problem_.scratch[at(node)]);
    live_ = live_ + change.begins - change.ends;
    for (const std::int32_t i : items_of_[at(node)]) --untouched_[at(i)];
    ready_.erase(node);
    for (const std::int32_t next : after_[at(node)]) {
      if (--waits_[at(next)] == 0) ready_.insert(next);
    }
  }

  const OrderProblem& problem_;
  std::vector<std::vector<std::int32_t>> items_of_, after_;
  std::vector<std::size_t> untouched_;  // by item: touches still to run
  std::vector<std::size_t> waits_;      // by node: for so many others
  std::set<std::int32_t> ready_;
  Bytes live_, peak_;
};

Order listed_from_the_back(const OrderProblem& problem) {
  Order order = Listing(backwards(problem)).run();
  const auto last = static_cast<std::int32_t>(order.size()) - 1;
  for (std::int32_t& node : order) node = last - node;
  std::ranges::reverse(order);
  return order;
}

/// Reorders windows around the peak until none lowers it.
class Improvement {
 public:
  Improvement(const OrderProblem& problem, const LowerPeakOptions& options)
      : problem_(problem), options_(options), items_of_(items_of_nodes(problem)) {}

  Order run(Order order) {
    for (int round = 0; round < options_.most_rounds && !is_stopped(); ++round) {
      if (!lower(order)) break;
    }
    return order;
  }

 private:
  [[nodiscard]] bool is_stopped() const { return options_.stop && options_.stop(); }

  bool lower(Order& order) const {
    const Peak top = peak(live_in_order(problem_, order));
    const auto step = static_cast<std::size_t>(top.step);
    const std::size_t count = std::min(window, order.size());
    const std::size_t latest = order.size() - count;
    std::size_t tried = order.size();
    for (const std::size_t back : {count / 2, count - count / 8, count / 8}) {
      const std::size_t begin = std::min(step - std::min(step, back), latest);
      if (begin == tried) continue;
      tried = begin;
      const WindowOrder found =
          order_window(problem_, items_of_, order, begin, count, options_.most_sets, top.bytes);
      if (found.nodes.empty()) continue;
      std::ranges::copy(found.nodes, order.begin() + static_cast<std::ptrdiff_t>(begin));
      return true;
    }
    return false;
  }

  const OrderProblem& problem_;
  const LowerPeakOptions& options_;
  std::vector<std::vector<std::int32_t>> items_of_;
};

}  // namespace

Order lower_peak_order(const OrderProblem& problem, const LowerPeakOptions& options) {
  Order given(problem.before.size());
  std::iota(given.begin(), given.end(), 0);
  if (given.empty()) return given;
  std::vector<Order> starts{given};
  if (given.size() <= most_nodes_listed) {
    starts.push_back(Listing(problem).run());
    starts.push_back(listed_from_the_back(problem));
  }
  Order best = given;
  Bytes lowest = peak_of_order(problem, given);
  Improvement improvement(problem, options);
  for (Order& start : starts) {
    Order order = improvement.run(std::move(start));
    const Bytes reached = peak_of_order(problem, order);
    if (reached >= lowest) continue;
    lowest = reached;
    best = std::move(order);
  }
  return best;
}

}  // namespace stowage
