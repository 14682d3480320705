#include "planner/solve/tighten.hpp"

#include <algorithm>

#include "planner/solve/step_profile.hpp"

namespace stowage {

namespace {

class Tightening {
 public:
  Tightening(const CutModel& model, Restrictions& restrictions)
      : problem_(*model.problem),
        restrictions_(restrictions),
        steps_(static_cast<std::int32_t>(problem_.operations.size())),
        excess_(nothing_placed(model)),
        own_(problem_.operations.size(), 0) {
    for (std::size_t t = 0; t < own_.size(); ++t) own_[t] = least_own(problem_.operations[t]);
    for (const Item& item : problem_.items) {
      present_.emplace_back(item.touches.size(), 0);
      for (const Touch& touch : item.touches) {
        own_[static_cast<std::size_t>(touch.step)] += item.bytes.count();
      }
    }
  }

  bool run() {
    for (std::size_t i = 0; i < problem_.items.size(); ++i) {
      for (std::size_t gap = 0; gap < restrictions_.gap[i].size(); ++gap) {
        if (restrictions_.gap[i][gap] == GapPin::resident && !keep(i, gap)) return false;
      }
    }
    count_operations();
    constexpr int most_passes = 20;  // each is sound by itself
    for (int pass = 0; pass < most_passes; ++pass) {
      if (excess_.largest() > 0) return false;
      if (!rule_out()) break;
    }
    return true;
  }

 private:
  static std::vector<std::int64_t> nothing_placed(const CutModel& model) {
    std::vector<std::int64_t> memory;
    for (const Bytes limit : model.limits) memory.push_back(-limit.count());
    return memory;
  }

  static std::int64_t least_own(const Operation& operation) {
    Bytes least = operation.engines.front().workspace;
    for (const EngineCost& engine : operation.engines) least = std::min(least, engine.workspace);
    return (least + operation.temporaries).count();
  }

  Pin& device(std::size_t item, std::size_t touch) {
    const Touch& at = problem_.items[item].touches[touch];
    return restrictions_.device[static_cast<std::size_t>(at.step)];
  }

  // Notes that the copy at a touch is there for certain.
  void place(std::size_t item, std::size_t touch) {
    if (present_[item][touch]) return;
    present_[item][touch] = 1;
    const std::int32_t step = problem_.items[item].touches[touch].step;
    const std::int64_t bytes = problem_.items[item].bytes.count();
    excess_.add(StepRange::single(step), bytes);
    own_[static_cast<std::size_t>(step)] -= bytes;
  }

  bool keep(std::size_t item, std::size_t gap) {
    const Item& of = problem_.items[item];
    const GapSteps inside = steps_inside(of, static_cast<std::int32_t>(gap), steps_);
    excess_.add(inside.within, of.bytes.count());
    excess_.add(inside.wrapped, of.bytes.count());
    for (const std::size_t touch : {gap, (gap + 1) % of.touches.size()}) {
      place(item, touch);
      if (!of.touches[touch].writes) continue;
      if (device(item, touch) == Pin::cpu) return false;
      device(item, touch) = Pin::gpu;
    }
    return true;
  }

  void count_operations() {
    for (std::size_t i = 0; i < problem_.items.size(); ++i) {
      for (std::size_t touch = 0; touch < present_[i].size(); ++touch) {
        if (device(i, touch) == Pin::gpu) place(i, touch);
      }
    }
    // An operation's need beside the certain copies: its workspace and, if it is free, the copies
    // that it would add.
    for (std::size_t t = 0; t < own_.size(); ++t) {
      if (restrictions_.device[t] != Pin::gpu) continue;
      excess_.add(StepRange::single(static_cast<std::int32_t>(t)), own_[t]);
    }
  }

  bool rule_out() {
    bool changed = false;
    for (std::size_t t = 0; t < own_.size(); ++t) {
      if (restrictions_.device[t] != Pin::free) continue;
      if (excess_.at(static_cast<std::int32_t>(t)) + own_[t] <= 0) continue;
      restrictions_.device[t] = Pin::cpu;
      changed = true;
    }
    for (std::size_t i = 0; i < problem_.items.size(); ++i) {
      for (std::size_t gap = 0; gap < restrictions_.gap[i].size(); ++gap) {
        if (restrictions_.gap[i][gap] != GapPin::free || may_stay(i, gap)) continue;
        restrictions_.gap[i][gap] = GapPin::dropped;
        changed = true;
      }
    }
    return changed;
  }

  bool may_stay(std::size_t item, std::size_t gap) {
    const Item& of = problem_.items[item];
    const std::int64_t bytes = of.bytes.count();
    for (const std::size_t touch : {gap, (gap + 1) % of.touches.size()}) {
      if (of.touches[touch].writes && device(item, touch) == Pin::cpu) return false;
      if (!present_[item][touch] && excess_.at(of.touches[touch].step) + bytes > 0) return false;
    }
    const GapSteps inside = steps_inside(of, static_cast<std::int32_t>(gap), steps_);
    return std::max(excess_.largest(inside.within), excess_.largest(inside.wrapped)) <= -bytes;
  }

  const ResidencyProblem& problem_;
  Restrictions& restrictions_;
  std::int32_t steps_;
  StepProfile excess_;                      // what is there for certain, less the limit
  std::vector<std::int64_t> own_;           // by step: what its operation would add on the GPU
  std::vector<std::vector<char>> present_;  // by item, touch: for certain
};

}  // namespace

bool tighten(const CutModel& model, Restrictions& restrictions) {
  return Tightening(model, restrictions).run();
}

}  // namespace stowage
