#include "planner/explain/alternatives.hpp"

#include <algorithm>
#include <utility>

#include "planner/problem/versions.hpp"

namespace stowage {

namespace {

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

// The part of a problem that a change can affect: the selected items and operations, what these
// touch, and the steps of all of these. The cost of other operations does not change.
class AffectedPart {
 public:
  AffectedPart(const PlannedProblem& planned, const Selection& selection)
      : items_(selection.items) {
    std::vector<std::int32_t> steps = selection.operations;
    for (const std::int32_t operation : selection.operations) {
      const auto& touched = planned.items_at[at(operation)];
      items_.insert(items_.end(), touched.begin(), touched.end());
    }
    sort_unique(items_);
    for (const std::int32_t item : items_) {
      for (const Touch& touch : planned.problem.items[at(item)].touches) {
        steps.push_back(touch.step);
      }
    }
    sort_unique(steps);
    steps_ = std::move(steps);
    for (const std::int32_t step : steps_) {
      problem_.operations.push_back(planned.problem.operations[at(step)]);
      placement_.device.push_back(planned.placement.device[at(step)]);
      placement_.engine.push_back(planned.placement.engine[at(step)]);
    }
    for (const std::int32_t item : items_) {
      problem_.items.push_back(planned.problem.items[at(item)]);
      for (Touch& touch : problem_.items.back().touches) touch.step = local(touch.step);
      placement_.on_gpu.push_back(planned.placement.on_gpu[at(item)]);
      placement_.resident.push_back(planned.placement.resident[at(item)]);
    }
  }

  [[nodiscard]] Evaluation cost() const { return evaluate(problem_, placement_); }

  void move(const std::vector<std::int32_t>& operations, Device device) {
    for (const std::int32_t operation : operations) {
      placement_.device[at(local(operation))] = device;
      placement_.engine[at(local(operation))] = 0;
    }
    for (std::size_t i = 0; i < items_.size(); ++i) settle(i);
    if (device == Device::gpu) keep_what_saves();
  }

  void keep(const std::vector<std::int32_t>& items) {
    for (const std::int32_t item : items) {
      const std::size_t i = local_item(item);
      for (std::size_t gap = 0; gap < placement_.resident[i].size(); ++gap) {
        placement_.resident[i][gap] = can_stay(i, gap);
      }
      drop_idle(i);
    }
  }

  void drop(const std::vector<std::int32_t>& items) {
    for (const std::int32_t item : items) {
      const std::size_t i = local_item(item);
      placement_.resident[i].assign(placement_.resident[i].size(), false);
      set_presence(i);
    }
  }

  void write_into(Placement& whole) const {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      whole.device[at(steps_[i])] = placement_.device[i];
      whole.engine[at(steps_[i])] = placement_.engine[i];
    }
    for (std::size_t i = 0; i < items_.size(); ++i) {
      whole.on_gpu[at(items_[i])] = placement_.on_gpu[i];
      whole.resident[at(items_[i])] = placement_.resident[i];
    }
  }

 private:
  static void sort_unique(std::vector<std::int32_t>& values) {
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
  }
  static std::int32_t place_in(const std::vector<std::int32_t>& values, std::int32_t value) {
    return static_cast<std::int32_t>(std::lower_bound(values.begin(), values.end(), value) -
                                     values.begin());
  }
  [[nodiscard]] std::int32_t local(std::int32_t step) const { return place_in(steps_, step); }
  [[nodiscard]] std::size_t local_item(std::int32_t item) const {
    return at(place_in(items_, item));
  }

  [[nodiscard]] bool on_cpu(const Touch& touch) const {
    return placement_.device[at(touch.step)] == Device::cpu;
  }

  /// Whether an item can stay in a gap: both ends can hold a copy, and the next touch reads it.
  [[nodiscard]] bool can_stay(std::size_t i, std::size_t gap) const {
    const Item& item = problem_.items[i];
    const Touch& from = item.touches[gap];
    const Touch& to = item.touches[(gap + 1) % item.touches.size()];
    return to.reads && !(from.writes && on_cpu(from)) && !(to.writes && on_cpu(to));
  }

  /// Drops gaps that cannot stay after operations have moved.
  void settle(std::size_t i) {
    for (std::size_t gap = 0; gap < placement_.resident[i].size(); ++gap) {
      placement_.resident[i][gap] = placement_.resident[i][gap] && can_stay(i, gap);
    }
    drop_idle(i);
  }

  /// Drops copies that end at a reader on the CPU or begin there: they are of no use.
  void drop_idle(std::size_t i) {
    const Item& item = problem_.items[i];
    std::vector<bool>& resident = placement_.resident[i];
    const std::size_t touches = item.touches.size();
    const auto passes_through = [&](std::size_t touch) {
      const std::int32_t before = gap_before(item, static_cast<std::int32_t>(touch));
      return before >= 0 && resident[at(before)] && touch < resident.size() && resident[touch];
    };
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t gap = 0; gap < resident.size(); ++gap) {
        const std::size_t next = (gap + 1) % touches;
        const bool idle = (on_cpu(item.touches[gap]) && !passes_through(gap)) ||
                          (on_cpu(item.touches[next]) && !passes_through(next));
        if (!resident[gap] || !idle) continue;
        resident[gap] = false;
        changed = true;
      }
    }
    set_presence(i);
  }

  void set_presence(std::size_t i) {
    const Item& item = problem_.items[i];
    std::vector<bool>& on_gpu = placement_.on_gpu[i];
    for (std::size_t touch = 0; touch < on_gpu.size(); ++touch) {
      on_gpu[touch] = !on_cpu(item.touches[touch]);
    }
    for (std::size_t gap = 0; gap < placement_.resident[i].size(); ++gap) {
      if (placement_.resident[i][gap]) on_gpu[gap] = on_gpu[(gap + 1) % on_gpu.size()] = true;
    }
  }

  /// Keeps each item in the gaps that the move left, where that is cheaper.
  void keep_what_saves() {
    double least = cost().cost_seconds;
    for (std::size_t i = 0; i < items_.size(); ++i) {
      const std::vector<bool> resident = placement_.resident[i], on_gpu = placement_.on_gpu[i];
      keep({items_[i]});
      const double kept = cost().cost_seconds;
      if (kept < least) {
        least = kept;
        continue;
      }
      placement_.resident[i] = resident;
      placement_.on_gpu[i] = on_gpu;
    }
  }

  std::vector<std::int32_t> items_, steps_;  // of the whole problem, ascending
  ResidencyProblem problem_;
  Placement placement_;
};

void apply(const Selection& selection, Alternative alternative, AffectedPart& part) {
  switch (alternative) {
    case Alternative::as_planned:
      return;
    case Alternative::on_cpu:
      return part.move(selection.operations, Device::cpu);
    case Alternative::on_gpu:
      return part.move(selection.operations, Device::gpu);
    case Alternative::kept:
      return part.keep(selection.items);
    case Alternative::swapped:
      return part.drop(selection.items);
  }
}

/// Whether there is something that the alternative would move.
bool changes_something(const PlannedProblem& planned, const Selection& selection,
                       Alternative alternative) {
  const auto any_on = [&](Device device) {
    return std::ranges::any_of(selection.operations, [&](std::int32_t operation) {
      return planned.placement.device[at(operation)] == device;
    });
  };
  switch (alternative) {
    case Alternative::as_planned:
      return true;
    case Alternative::on_cpu:
      return any_on(Device::gpu);
    case Alternative::on_gpu:
      return any_on(Device::cpu);
    case Alternative::kept:
    case Alternative::swapped:
      return !selection.items.empty();
  }
  return false;
}

}  // namespace

std::string_view to_string(Alternative alternative) {
  switch (alternative) {
    case Alternative::as_planned:
      return "as planned";
    case Alternative::on_cpu:
      return "on the CPU";
    case Alternative::on_gpu:
      return "on the GPU";
    case Alternative::kept:
      return "kept on the GPU";
    case Alternative::swapped:
      return "swapped between uses";
  }
  return "";
}

AddedCost added_cost(const PlannedProblem& planned, const Selection& selection,
                     Alternative alternative) {
  AffectedPart part(planned, selection);
  const Evaluation before = part.cost();
  apply(selection, alternative, part);
  const Evaluation after = part.cost();
  return {after.cost_seconds - before.cost_seconds,
          after.h2d_bytes.count() - before.h2d_bytes.count(),
          after.d2h_bytes.count() - before.d2h_bytes.count()};
}

Bytes peak_with(const PlannedProblem& planned, const Selection& selection,
                Alternative alternative) {
  Placement placement = planned.placement;
  AffectedPart part(planned, selection);
  apply(selection, alternative, part);
  part.write_into(placement);
  return evaluate(planned.problem, placement).peak;
}

std::vector<AlternativeCost> alternative_costs(const PlannedProblem& planned,
                                               const Selection& selection) {
  std::vector<AlternativeCost> result;
  std::vector<Placement> seen;
  using enum Alternative;
  for (const Alternative alternative : {as_planned, on_cpu, on_gpu, kept, swapped}) {
    if (!changes_something(planned, selection, alternative)) continue;
    Placement placement = planned.placement;
    if (alternative != as_planned) {
      AffectedPart part(planned, selection);
      apply(selection, alternative, part);
      part.write_into(placement);
    }
    const Evaluation found = evaluate(planned.problem, placement);
    // The plan may keep copies that are of no use. Without them it is not another plan.
    const bool moved = placement.device != planned.placement.device;
    const bool same_copies = found.h2d_bytes == planned.evaluation.h2d_bytes &&
                             found.d2h_bytes == planned.evaluation.d2h_bytes;
    if (alternative != as_planned && !moved && same_copies) continue;
    if (std::ranges::find(seen, placement) != seen.end()) continue;
    seen.push_back(placement);
    result.push_back({alternative, found.cost_seconds, found.h2d_bytes, found.d2h_bytes, found.peak,
                      found.peak_step});
  }
  return result;
}

}  // namespace stowage
