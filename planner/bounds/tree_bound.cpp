#include "planner/bounds/tree_bound.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "planner/bounds/priced_bound.hpp"

namespace stowage {

namespace {

constexpr std::size_t most_places = 8'000'000;  // of the rounded limits that hold in one branch
constexpr std::int64_t most_units = std::int64_t{1} << 61;
constexpr double largest_number = 1e100, smallest_number = 1e-100;  // costs and prices that count

bool is_price(double price) { return price >= smallest_number && price <= largest_number; }

// Whether they are as RoundedLimit has them, so that a search for a number finds it.
bool are_ranges(const std::vector<StorageRange>& ranges) {
  std::int64_t end = 0;
  return std::ranges::all_of(ranges, [&](const StorageRange& range) {
    const bool fits = range.first >= end && range.last >= range.first;
    end = std::int64_t{range.last} + 1;
    return fits;
  });
}

// The node (gap < 0) or the gap that a fixing decides.
struct FixedPlace {
  std::size_t index = 0;
  std::ptrdiff_t gap = -1;
};

class TreeWalk {
 public:
  TreeWalk(const BoundProblem& problem, const BranchTree& tree) : problem_(problem), tree_(tree) {}

  TreeBound run() && {
    result_.least = no_placement;
    if (end_of_tree(tree_) != tree_.size()) return refused("its branches do not cover every plan");
    const std::size_t most = most_tree_work / std::max<std::size_t>(problem_.size(), 1);
    if (tree_.size() > most) {
      return refused(
          fmt::format("{} branches of so large a step are too many to be checked", tree_.size()));
    }
    std::size_t limits = 0;
    for (const BranchNode& node : tree_) limits += node.limits.size();
    if (limits > most) {
      return refused(
          fmt::format("{} rounded limits of so large a step are too many to be checked", limits));
    }
    open_.push_back({sides_of(problem_), 0, {}, 0, {}});
    for (const BranchNode& node : tree_) {
      Open at = std::move(open_.back());
      open_.pop_back();
      drop_limits_from(at.limits);
      path_.resize(at.depth);
      if (at.fixed) path_.push_back(at.decided);
      if (!visit(node, std::move(at.sides), at.fixed)) return std::move(result_);
    }
    return std::move(result_);
  }

 private:
  /// A subtree that is still to be walked.
  struct Open {
    FixedSides sides;
    std::size_t depth = 0;  // of what is fixed above it
    FixedChoice decided;    // what is fixed for it
    std::size_t limits = 0;
    std::optional<std::pair<FixedPlace, Side>> fixed;
  };
  struct NumberedLimit {
    std::int32_t number = 0;
    WeightedLimit limit;
  };

  TreeBound refused(std::string why) {
    result_.problem = std::move(why);
    return std::move(result_);
  }

  bool visit(const BranchNode& node, FixedSides sides,
             const std::optional<std::pair<FixedPlace, Side>>& fixed) {
    bool possible = true;
    if (fixed) {
      Side& side = fixed->first.gap < 0
                       ? sides.nodes[fixed->first.index]
                       : sides.gaps[fixed->first.index][static_cast<std::size_t>(fixed->first.gap)];
      possible = side == Side::open || side == fixed->second;
      side = fixed->second;
    }
    possible = possible && propagate_limit(problem_, sides);
    for (const RoundedLimit& rounding : node.limits) {
      if (!add_limit(rounding, sides, possible)) return false;
    }
    if (const BranchLeaf* leaf = node.leaf()) return visit_leaf(*leaf, sides, possible);
    return divide(*node.fixing(), std::move(sides));
  }

  bool add_limit(const RoundedLimit& rounding, const FixedSides& sides, bool possible) {
    if (rounding.step < 0 || rounding.step >= std::ssize(problem_.nodes) || rounding.divisor < 1 ||
        rounding.divisor > most_units || !are_ranges(rounding.counted)) {
      result_.problem = fmt::format("its rounded limit {} cannot be", next_limit_);
      return false;
    }
    limits_.push_back({next_limit_++, {}});
    if (!possible) return true;
    limits_.back().limit = rounded_by(problem_, sides, rounding);
    places_ += limits_.back().limit.places.size();
    if (places_ <= most_places) return true;
    result_.problem =
        fmt::format("its rounded limits up to {} take too much memory to be checked", next_limit_);
    return false;
  }

  void drop_limits_from(std::size_t first) {
    for (; limits_.size() > first; limits_.pop_back()) {
      places_ -= limits_.back().limit.places.size();
    }
  }

  bool visit_leaf(const BranchLeaf& leaf, const FixedSides& sides, bool possible) {
    ++result_.leaves;
    std::int32_t last = -1;
    for (const MemoryPrice& p : leaf.steps) {
      if (p.step <= last || p.step >= std::ssize(problem_.nodes) || !is_price(p.price)) {
        return refuse_leaf(fmt::format("the price {} of step {}", p.price, p.step));
      }
      last = p.step;
    }
    std::vector<PricedLimit> limits;
    last = -1;
    for (const LimitPrice& p : leaf.limits) {
      const auto found = std::ranges::lower_bound(limits_, p.limit, {}, &NumberedLimit::number);
      if (found == limits_.end() || found->number != p.limit || p.limit <= last ||
          !is_price(p.price)) {
        return refuse_leaf(fmt::format("the price {} of rounded limit {}", p.price, p.limit));
      }
      last = p.limit;
      if (!found->limit.places.empty()) limits.push_back({&found->limit, p.price});
    }
    if (!possible) return true;  // no plan is here
    const auto bound = priced_bound(problem_, sides, leaf.steps, limits, work_);
    if (!bound) {
      result_.problem = fmt::format("leaf {} takes too long to be checked", result_.leaves);
      return false;
    }
    if (*bound < result_.least) {
      result_.least = *bound;
      result_.leaf = result_.leaves;
      result_.fixed = path_;
    }
    return true;
  }

  bool refuse_leaf(std::string what) {
    result_.problem = fmt::format("at its leaf {} there cannot be {}", result_.leaves, what);
    return false;
  }

  bool divide(const Fixing& fixing, FixedSides sides) {
    const std::optional<FixedPlace> place = find(fixing);
    if (!place) {
      result_.problem = fixing.after < 0 ? fmt::format("there is no node {} to fix", fixing.subject)
                                         : fmt::format("storage {} has no gap after step {} to fix",
                                                       fixing.subject, fixing.after);
      return false;
    }
    const auto open = [&](FixedSides from, bool on_gpu) {
      open_.push_back({std::move(from),
                       path_.size(),
                       {fixing, on_gpu},
                       limits_.size(),
                       std::pair(*place, on_gpu ? Side::gpu : Side::away)});
    };
    open(sides, false);
    open(std::move(sides), true);
    return true;
  }

  [[nodiscard]] std::optional<FixedPlace> find(const Fixing& fixing) const {
    if (fixing.after < 0) {
      if (fixing.subject < 0 || fixing.subject >= std::ssize(problem_.nodes)) return std::nullopt;
      return FixedPlace{static_cast<std::size_t>(fixing.subject), -1};
    }
    const auto item =
        std::ranges::lower_bound(problem_.items, fixing.subject, {}, &BoundItem::number);
    if (item == problem_.items.end() || item->number != fixing.subject) return std::nullopt;
    const auto touch = std::ranges::lower_bound(item->touches, fixing.after, {}, &BoundTouch::step);
    if (touch == item->touches.end() || touch->step != fixing.after) return std::nullopt;
    const std::ptrdiff_t gap = touch - item->touches.begin();
    if (gap >= std::ssize(item->gaps)) return std::nullopt;
    return FixedPlace{static_cast<std::size_t>(item - problem_.items.begin()), gap};
  }

  const BoundProblem& problem_;
  const BranchTree& tree_;
  std::vector<Open> open_;             // the next one last
  std::vector<NumberedLimit> limits_;  // of the branch at hand
  std::vector<FixedChoice> path_;      // what is fixed there
  std::size_t places_ = 0;             // of all of them
  std::int32_t next_limit_ = 0;
  std::int64_t work_ = most_cut_work;
  TreeBound result_;
};

}  // namespace

std::string overflow_reason(const BoundProblem& problem) {
  double costs = 0;
  for (const BoundNode& node : problem.nodes) {
    costs += node.cpu_cost;
    for (const BoundEngine& engine : node.engines) costs += engine.cost;
  }
  double bytes = 0;
  for (const BoundItem& item : problem.items) {
    const auto touches = static_cast<double>(item.touches.size());
    costs += touches * (item.upload + item.download);
    bytes += touches * static_cast<double>(item.bytes);
  }
  for (const BoundNode& node : problem.nodes) bytes += static_cast<double>(node.least_scratch());
  if (!(costs <= largest_number)) return "its times cannot be added up";
  if (!(bytes < 2e18) || problem.limit < 0 || problem.limit > most_units) {
    return "its sizes cannot be added up";
  }
  return {};
}

TreeBound tree_bound(const BoundProblem& problem, const BranchTree& tree) {
  return TreeWalk(problem, tree).run();
}

}  // namespace stowage
