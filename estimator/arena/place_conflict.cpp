#include "estimator/arena/place_conflict.hpp"

#include <algorithm>

namespace stowage {
namespace {

constexpr std::size_t most_firsts = 48;
constexpr std::size_t most_thirds = 8;

std::size_t at(std::int32_t step) { return static_cast<std::size_t>(step); }

/// The steps sorted and without duplicates; at most `most` of them, evenly chosen, with the first
/// and the last.
std::vector<std::int32_t> thinned(std::vector<std::int32_t> steps, std::size_t most) {
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  if (steps.size() <= most) return steps;
  std::vector<std::int32_t> some;
  for (std::size_t i = 0; i < most; ++i) {
    some.push_back(steps[i * (steps.size() - 1) / (most - 1)]);
  }
  return some;
}

bool is_live(const std::vector<StepRange>& live, std::int32_t step) {
  return std::any_of(live.begin(), live.end(), [&](const StepRange& range) {
    return range.begin <= step && step < range.end;
  });
}

class ConflictSearch {
 public:
  ConflictSearch(const ArenaBlocks& blocks, std::int64_t peak)
      : blocks_(blocks), peak_(peak), change_(at(blocks.steps) + 1) {
    for (const Bytes bytes : live_bytes(blocks)) live_.push_back(bytes.count());
    result_.least_peak = blocks.lower_bound;
  }

  PlaceConflict run() && {
    std::vector<std::int32_t> firsts, thirds;
    for (const auto& live : blocks_.live) {
      for (std::size_t i = 1; i < live.size(); ++i) {
        firsts.push_back(live[i - 1].end - 1);
        thirds.push_back(live[i].begin);
      }
    }
    thirds = thinned(std::move(thirds), most_thirds);
    for (const std::int32_t first : thinned(std::move(firsts), most_firsts)) {
      for (const std::int32_t third : thirds) {
        if (third > first + 1) sweep(first, third);
      }
    }
    const std::array<std::int32_t, 3> worst = worst_;
    if (result_.least_peak > peak_ && result_.least_peak > blocks_.lower_bound) {
      sweep(worst[1], worst[2]);
      sweep(worst[0], worst[1]);
    }
    return std::move(result_);
  }

 private:
  /// Tries the triples of the steps `a` and `b` with every other step.
  void sweep(std::int32_t a, std::int32_t b) {
    std::fill(change_.begin(), change_.end(), 0);
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < blocks_.count(); ++i) {
      const auto& live = blocks_.live[i];
      const bool at_a = is_live(live, a), at_b = is_live(live, b);
      if (at_a && at_b) {
        sum += blocks_.size[i];
      } else if (at_a || at_b) {
        for (const StepRange& range : live) {
          change_[at(range.begin)] += blocks_.size[i];
          change_[at(range.end)] -= blocks_.size[i];
        }
      }
    }
    for (std::int32_t other = 0; other < blocks_.steps; ++other) {
      sum += change_[at(other)];
      if (other == a || other == b) continue;
      std::array<std::int32_t, 3> steps{a, b, other};
      std::ranges::sort(steps);
      if (sum > result_.least_peak) {
        result_.least_peak = sum;
        worst_ = steps;
      }
      if (sum > peak_) note(steps, sum);
    }
  }

  void note(const std::array<std::int32_t, 3>& steps, std::int64_t sum) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      std::vector<std::int64_t>& excess = result_.excess[i];
      if (excess.empty()) excess.assign(live_.size(), 0);
      std::int64_t& most = excess[at(steps[i])];
      most = std::max(most, sum - live_[at(steps[i])]);
    }
  }

  const ArenaBlocks& blocks_;
  std::int64_t peak_;
  std::vector<std::int64_t> change_;  // by step: how the sum of a triple changes there
  std::vector<std::int64_t> live_;    // by step
  std::array<std::int32_t, 3> worst_{};
  PlaceConflict result_;
};

}  // namespace

PlaceConflict find_conflict(const ArenaBlocks& blocks, std::int64_t peak) {
  return ConflictSearch(blocks, peak).run();
}

}  // namespace stowage
