#include "planner/solve/placement_index.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace stowage {

namespace {

// Flat lists by owner, made from (owner, value) pairs in any order; the values of an owner keep
// their order.
template <typename T>
struct Grouping {
  std::vector<T> values;
  std::vector<std::int32_t> first;

  template <typename ForEach>
  Grouping(std::size_t owners, const ForEach& for_each) : first(owners + 1, 0) {
    for_each([&](std::size_t owner, const T&) { ++first[owner + 1]; });
    std::partial_sum(first.begin(), first.end(), first.begin());
    values.resize(static_cast<std::size_t>(first.back()));
    std::vector<std::int32_t> next(first.begin(), first.end() - 1);
    for_each([&](std::size_t owner, const T& value) {
      values[static_cast<std::size_t>(next[owner]++)] = value;
    });
  }
};

}  // namespace

PlacementIndex::PlacementIndex(const CutModel& model) {
  const ResidencyProblem& problem = *model.problem;
  const auto steps = static_cast<std::int32_t>(problem.operations.size());
  const auto scaled = [&](double seconds) {
    return static_cast<Capacity>(std::llround(std::ldexp(seconds, model.unit_exponent)));
  };
  std::int32_t touches = 0;
  for (std::size_t i = 0; i < problem.items.size(); ++i) {
    const Item& item = problem.items[i];
    first_touch_of_item_.push_back(touches);
    touches += static_cast<std::int32_t>(item.touches.size());
    h2d_.push_back(scaled(item.h2d_seconds));
    d2h_.push_back(scaled(item.d2h_seconds));
    first_gap_.push_back(static_cast<std::int32_t>(gaps_.size()));
    for (std::int32_t gap = 0; gap < gap_count(item); ++gap) {
      gaps_.push_back({static_cast<std::int32_t>(i), gap, steps_inside(item, gap, steps)});
    }
  }
  for (const Operation& operation : problem.operations) {
    cpu_cost_.push_back(scaled(operation.cpu_seconds));
    first_engine_.push_back(static_cast<std::int32_t>(engine_cost_.size()));
    for (const EngineCost& engine : operation.engines) {
      engine_cost_.push_back(scaled(engine.seconds));
    }
  }
  index_operations(model);
  index_steps(steps);
}

void PlacementIndex::index_operations(const CutModel& model) {
  const ResidencyProblem& problem = *model.problem;
  const Grouping<TouchPlace> touches(problem.operations.size(), [&](const auto& put) {
    for (std::size_t i = 0; i < problem.items.size(); ++i) {
      const std::vector<Touch>& of = problem.items[i].touches;
      for (std::size_t k = 0; k < of.size(); ++k) {
        put(at(of[k].step), TouchPlace{static_cast<std::int32_t>(i), static_cast<std::int32_t>(k)});
      }
    }
  });
  touches_ = touches.values;
  first_touch_ = touches.first;
  const Grouping<std::int32_t> beside(problem.operations.size(), [&](const auto& put) {
    for (std::size_t place = 0; place < gaps_.size(); ++place) {
      const std::vector<Touch>& of = problem.items[at(gaps_[place].item)].touches;
      const std::size_t from = at(gaps_[place].gap);
      const std::size_t to = (from + 1) % of.size();
      put(at(of[from].step), static_cast<std::int32_t>(place));
      if (to != from) put(at(of[to].step), static_cast<std::int32_t>(place));
    }
  });
  beside_ = beside.values;
  first_beside_ = beside.first;
}

void PlacementIndex::index_steps(std::int32_t steps) {
  while (width_ < steps) width_ *= 2;
  const Grouping<std::int32_t> over(at(2 * width_), [&](const auto& put) {
    const auto put_range = [&](StepRange range, std::int32_t place) {
      // From the leaves up: a node that is not covered together with its sibling gets the range
      // itself.
      std::int32_t begin = range.begin + width_;
      std::int32_t end = range.end + width_;
      for (; begin < end; begin /= 2, end /= 2) {
        if (begin % 2 == 1) put(at(begin++), place);
        if (end % 2 == 1) put(at(--end), place);
      }
    };
    for (std::size_t place = 0; place < gaps_.size(); ++place) {
      const GapSteps& inside = gaps_[place].inside;
      if (!inside.within.empty()) put_range(inside.within, static_cast<std::int32_t>(place));
      if (!inside.wrapped.empty()) put_range(inside.wrapped, static_cast<std::int32_t>(place));
    }
  });
  over_ = over.values;
  first_over_ = over.first;
}

void PlacementIndex::gaps_over(std::int32_t step, std::vector<std::int32_t>& places) const {
  places.clear();
  for (std::int32_t node = step + width_; node >= 1; node /= 2) {
    const auto here = part(over_, first_over_, node);
    places.insert(places.end(), here.begin(), here.end());
  }
  std::sort(places.begin(), places.end());
}

}  // namespace stowage
