#include "planner/bounds/fixed_sides.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace stowage {

namespace {

constexpr int most_passes = 64;  // each holds by itself

// The largest value of any range of a constant list, from the largest values of all ranges whose
// length is a power of two.
class RangeLargest {
 public:
  explicit RangeLargest(std::vector<std::int64_t> values) {
    levels_.push_back(std::move(values));
    for (std::size_t width = 1; 2 * width <= levels_.front().size(); width *= 2) {
      const std::vector<std::int64_t>& below = levels_.back();
      std::vector<std::int64_t> level;
      for (std::size_t i = 0; i + width < below.size(); ++i) {
        level.push_back(std::max(below[i], below[i + width]));
      }
      levels_.push_back(std::move(level));
    }
  }

  [[nodiscard]] std::int64_t operator()(std::int32_t begin, std::int32_t end) const {
    if (begin >= end) return std::numeric_limits<std::int64_t>::min();
    const auto first = static_cast<std::size_t>(begin);
    const auto length = static_cast<std::size_t>(end - begin);
    const auto level = static_cast<std::size_t>(std::bit_width(length)) - 1;
    return std::max(levels_[level][first],
                    levels_[level][first + length - (std::size_t{1} << level)]);
  }

 private:
  std::vector<std::vector<std::int64_t>> levels_;
};

class LimitPropagation {
 public:
  LimitPropagation(const BoundProblem& problem, FixedSides& sides)
      : problem_(problem), sides_(sides), steps_(static_cast<std::int32_t>(problem.nodes.size())) {}

  bool run() {
    for (int pass = 0; pass < most_passes; ++pass) {
      if (!fix_writers()) return false;
      sum_certain_memory();
      if (std::ranges::any_of(memory_, [&](std::int64_t sum) { return sum > problem_.limit; })) {
        return false;
      }
      if (!exclude_what_exceeds()) return true;
    }
    return true;
  }

 private:
  [[nodiscard]] Side& node_at(const BoundTouch& touch) {
    return sides_.nodes[static_cast<std::size_t>(touch.step)];
  }

  // A gap that is kept from or to a touch that writes: the touch wrote on the GPU.
  bool fix_writers() {
    for (std::size_t i = 0; i < problem_.items.size(); ++i) {
      const BoundItem& item = problem_.items[i];
      for (std::size_t gap = 0; gap < item.gaps.size(); ++gap) {
        if (sides_.gaps[i][gap] != Side::gpu) continue;
        for (const std::size_t end : {gap, item.after(gap)}) {
          if (!item.touches[end].writes) continue;
          if (node_at(item.touches[end]) == Side::away) return false;
          node_at(item.touches[end]) = Side::gpu;
        }
      }
    }
    return true;
  }

  // Sums the memory that is taken for certain, by step, and notes which copies are there for
  // certain.
  void sum_certain_memory() {
    std::vector<std::int64_t> change(static_cast<std::size_t>(steps_) + 1, 0);
    const auto add = [&](std::int32_t begin, std::int32_t end, std::int64_t bytes) {
      if (begin >= end) return;
      change[static_cast<std::size_t>(begin)] += bytes;
      change[static_cast<std::size_t>(end)] -= bytes;
    };
    present_.resize(problem_.items.size());
    wanted_.assign(problem_.nodes.size(), 0);
    for (std::size_t i = 0; i < problem_.items.size(); ++i) {
      const BoundItem& item = problem_.items[i];
      present_[i].assign(item.touches.size(), false);
      for (std::size_t touch = 0; touch < item.touches.size(); ++touch) {
        present_[i][touch] = node_at(item.touches[touch]) == Side::gpu;
      }
      for (std::size_t gap = 0; gap < item.gaps.size(); ++gap) {
        if (sides_.gaps[i][gap] != Side::gpu) continue;
        present_[i][gap] = present_[i][item.after(gap)] = true;
        each_range_inside(item, gap, steps_, [&](std::int32_t begin, std::int32_t end) {
          add(begin, end, item.bytes);
        });
      }
      for (std::size_t touch = 0; touch < item.touches.size(); ++touch) {
        const std::int32_t step = item.touches[touch].step;
        if (present_[i][touch]) add(step, step + 1, item.bytes);
        if (!present_[i][touch]) wanted_[static_cast<std::size_t>(step)] += item.bytes;
      }
    }
    for (std::int32_t t = 0; t < steps_; ++t) {
      const auto at = static_cast<std::size_t>(t);
      if (sides_.nodes[at] == Side::gpu) add(t, t + 1, problem_.nodes[at].least_scratch());
    }
    for (std::size_t t = 1; t < change.size(); ++t) change[t] += change[t - 1];
    change.pop_back();
    memory_ = std::move(change);
  }

  bool exclude_what_exceeds() {
    bool changed = false;
    for (std::size_t t = 0; t < problem_.nodes.size(); ++t) {
      if (sides_.nodes[t] != Side::open) continue;
      const std::int64_t own = wanted_[t] + problem_.nodes[t].least_scratch();
      if (memory_[t] + own <= problem_.limit) continue;
      sides_.nodes[t] = Side::away;
      changed = true;
    }
    const RangeLargest largest(memory_);
    for (std::size_t i = 0; i < problem_.items.size(); ++i) {
      const BoundItem& item = problem_.items[i];
      for (std::size_t gap = 0; gap < item.gaps.size(); ++gap) {
        if (sides_.gaps[i][gap] != Side::open || may_stay(i, gap, largest)) continue;
        sides_.gaps[i][gap] = Side::away;
        changed = true;
      }
    }
    return changed;
  }

  bool may_stay(std::size_t index, std::size_t gap, const RangeLargest& largest) {
    const BoundItem& item = problem_.items[index];
    const std::int64_t room = problem_.limit - item.bytes;
    for (const std::size_t end : {gap, item.after(gap)}) {
      const BoundTouch& touch = item.touches[end];
      if (touch.writes && node_at(touch) == Side::away) return false;
      if (!present_[index][end] && memory_[static_cast<std::size_t>(touch.step)] > room) {
        return false;
      }
    }
    bool fits = true;
    each_range_inside(item, gap, steps_, [&](std::int32_t begin, std::int32_t end) {
      fits = fits && largest(begin, end) <= room;
    });
    return fits;
  }

  const BoundProblem& problem_;
  FixedSides& sides_;
  std::int32_t steps_;
  std::vector<std::int64_t> memory_;        // by step: what is there for certain
  std::vector<std::int64_t> wanted_;        // by step: what its node touches beside that
  std::vector<std::vector<bool>> present_;  // by item, touch: there for certain
};

}  // namespace

GapSides::GapSides(const BoundProblem& problem) {
  std::vector<std::size_t> begins{0};
  begins.reserve(problem.items.size() + 1);
  for (const BoundItem& item : problem.items) {
    sides_.insert(sides_.end(), item.gaps.begin(), item.gaps.end());
    begins.push_back(sides_.size());
  }
  begins_ = std::make_shared<const std::vector<std::size_t>>(std::move(begins));
}

FixedSides sides_of(const BoundProblem& problem) {
  FixedSides sides;
  for (const BoundNode& node : problem.nodes) sides.nodes.push_back(node.side);
  sides.gaps = GapSides(problem);
  return sides;
}

bool propagate_limit(const BoundProblem& problem, FixedSides& sides) {
  return LimitPropagation(problem, sides).run();
}

}  // namespace stowage
