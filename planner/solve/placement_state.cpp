#include "planner/solve/placement_state.hpp"

#include <algorithm>
#include <cassert>

namespace stowage {

PlacementState::PlacementState(const CutModel& model, const PlacementIndex& index_of_all,
                               const Placement& start)
    : model_(model), problem_(*model.problem), index_(index_of_all), memory_({}) {
  const std::size_t operations = problem_.operations.size();
  gpu_.assign(operations, 0);
  engine_.assign(operations, 0);
  resident_.assign(gaps().size(), 0);
  settled_.assign(operations, 0);
  for (std::size_t t = 0; t < operations; ++t) {
    const auto operation = static_cast<std::int32_t>(t);
    gpu_[t] = start.device[t] == Device::gpu ? 1 : 0;
    if (gpu_[t]) engine_[t] = start.engine[t];
    cost_ += operation_cost(operation);
  }
  for (std::size_t g = 0; g < gaps().size(); ++g) {
    const GapPlace& gap = gaps()[g];
    const bool wanted = start.resident[index(gap.item)][index(gap.gap)] || must_be_resident(gap);
    resident_[g] = wanted && may_be_resident(gap) ? 1 : 0;
  }
  for (std::size_t i = 0; i < problem_.items.size(); ++i) {
    item_cost_.push_back(item_cost(static_cast<std::int32_t>(i)));
    cost_ += item_cost_.back();
  }
  memory_ = StepProfile(memory_now());
  if (!model.host.any()) return;
  host_.emplace(model);
  for (std::int32_t i = 0; i < std::ssize(problem_.items); ++i) host_->set(i, host_stay_of(i));
  for (std::int32_t v = 0; v < std::ssize(problem_.operations); ++v) {
    if (!gpu_[index(v)]) host_->set_temporaries(v, true);
  }
}

void PlacementState::price_host(const HostPrices& prices) {
  if (!host_) return;
  host_->set_prices(prices);
  for (std::int32_t i = 0; i < std::ssize(problem_.items); ++i) recount(i);
}

HostStay PlacementState::host_stay_of(std::int32_t item) const {
  const Item& of = problem_.items[index(item)];
  const auto on_cpu = [&](std::int32_t touch) {
    return !gpu_[index(of.touches[index(touch)].step)];
  };
  const auto fetched = [&](std::int32_t touch) {
    const std::int32_t before = gap_before(of, touch);
    return !(before >= 0 && is_kept(item, before)) && present(item, touch);
  };
  return host_stay(of, model_.versions[index(item)],
                   static_cast<std::int32_t>(problem_.operations.size()), on_cpu, fetched);
}

// By step: memory minus the limit.
std::vector<std::int64_t> PlacementState::memory_now() const {
  const std::size_t steps = problem_.operations.size();
  std::vector<std::int64_t> memory(steps);
  std::vector<std::int64_t> change(steps + 1, 0);
  const auto add = [&](StepRange range, std::int64_t bytes) {
    if (range.empty()) return;
    change[index(range.begin)] += bytes;
    change[index(range.end)] -= bytes;
  };
  for (std::size_t i = 0; i < problem_.items.size(); ++i) {
    const Item& item = problem_.items[i];
    for (std::int32_t touch = 0; touch < std::ssize(item.touches); ++touch) {
      if (!present(static_cast<std::int32_t>(i), touch)) continue;
      add(StepRange::single(item.touches[index(touch)].step), item.bytes.count());
    }
  }
  for (std::size_t g = 0; g < gaps().size(); ++g) {
    const GapPlace& gap = gaps()[g];
    const std::int64_t bytes = resident_[g] ? problem_.items[index(gap.item)].bytes.count() : 0;
    add(gap.inside.within, bytes);
    add(gap.inside.wrapped, bytes);
  }
  std::int64_t live = 0;
  for (std::size_t t = 0; t < steps; ++t) {
    live += change[t];
    memory[t] = live + operation_memory(static_cast<std::int32_t>(t)) - model_.limits[t].count();
  }
  return memory;
}

double PlacementState::cost_seconds() const { return static_cast<double>(cost_) * model_.unit(); }

bool PlacementState::can_hold(std::int32_t item, std::int32_t touch) const {
  const Touch& at = problem_.items[index(item)].touches[index(touch)];
  return gpu_[index(at.step)] || !at.writes;
}

bool PlacementState::present(std::int32_t item, std::int32_t touch) const {
  const Item& of = problem_.items[index(item)];
  const Touch& at = of.touches[index(touch)];
  if (gpu_[index(at.step)]) return true;
  if (at.writes) return false;
  const std::int32_t before = gap_before(of, touch);
  return (before >= 0 && is_kept(item, before)) || (touch < gap_count(of) && is_kept(item, touch));
}

Capacity PlacementState::item_cost(std::int32_t item) const {
  const Item& of = problem_.items[index(item)];
  const auto on_gpu = [&](std::int32_t touch) {
    return gpu_[index(of.touches[index(touch)].step)];
  };
  Capacity cost = 0;
  for (const Version& version : model_.versions[index(item)]) {
    bool host_copy = false;
    for (const std::int32_t reader : version.readers) {
      const std::int32_t before = gap_before(of, reader);
      const bool fetched = !(before >= 0 && is_kept(item, before)) && present(item, reader);
      if (fetched) cost += index_.h2d(item);
      host_copy = host_copy || fetched || !on_gpu(reader);
    }
    if (host_copy && version.producer >= 0 && on_gpu(version.producer)) cost += index_.d2h(item);
  }
  if (host_ && host_->is_priced()) cost += host_->cost(item, host_stay_of(item));
  return cost;
}

Capacity PlacementState::operation_cost(std::int32_t operation) const {
  if (!gpu_[index(operation)]) return index_.cpu_cost(operation);
  return index_.gpu_cost(operation, engine_[index(operation)]);
}

std::int64_t PlacementState::operation_memory(std::int32_t operation) const {
  if (!gpu_[index(operation)]) return 0;
  const Operation& of = problem_.operations[index(operation)];
  return (of.engines[index(engine_[index(operation)])].workspace + of.temporaries).count();
}

void PlacementState::recount(std::int32_t item) {
  for (const Touch& touch : problem_.items[index(item)].touches) settled_[index(touch.step)] = 0;
  if (host_) host_->set(item, host_stay_of(item));
  const Capacity now = item_cost(item);
  cost_ += now - item_cost_[index(item)];
  item_cost_[index(item)] = now;
}

bool PlacementState::resident(const GapPlace& gap) const { return is_kept(gap.item, gap.gap); }

bool PlacementState::must_be_resident(const GapPlace& gap) const {
  return gap_pin(problem_.items[index(gap.item)], gap.gap) == GapPin::resident;
}

bool PlacementState::may_be_resident(const GapPlace& gap) const {
  const Item& item = problem_.items[index(gap.item)];
  if (gap_pin(item, gap.gap) == GapPin::dropped) return false;
  const auto next = static_cast<std::int32_t>((index(gap.gap) + 1) % item.touches.size());
  return item.touches[index(next)].reads && can_hold(gap.item, gap.gap) && can_hold(gap.item, next);
}

Capacity PlacementState::flip_cost(const GapPlace& gap) {
  char& flag = kept(gap.item, gap.gap);
  flag = !flag;
  const Capacity flipped = item_cost(gap.item);
  flag = !flag;
  return flipped - item_cost_[index(gap.item)];
}

std::int64_t PlacementState::excess_in(const GapPlace& gap) const {
  return std::max(memory_.largest(gap.inside.within), memory_.largest(gap.inside.wrapped));
}

void PlacementState::flip(const GapPlace& gap) {
  const std::int32_t place = index_.first_gap(gap.item) + gap.gap;
  log_.push_back({Change::Kind::gap, place, 0});
  flip_gap(place);
}

void PlacementState::flip_gap(std::int32_t place) {
  const GapPlace& gap = gaps()[index(place)];
  const Item& item = problem_.items[index(gap.item)];
  const std::int64_t bytes = item.bytes.count();
  const auto next = static_cast<std::int32_t>((index(gap.gap) + 1) % item.touches.size());
  const auto weight = [&](std::int32_t touch) { return present(gap.item, touch) ? bytes : 0; };
  const std::int64_t here = weight(gap.gap);
  const std::int64_t there = weight(next);
  char& flag = kept(gap.item, gap.gap);
  flag = !flag;
  const std::int64_t change = flag ? bytes : -bytes;
  memory_.add(gap.inside.within, change);
  memory_.add(gap.inside.wrapped, change);
  add_memory(item.touches[index(gap.gap)].step, weight(gap.gap) - here);
  if (next != gap.gap) add_memory(item.touches[index(next)].step, weight(next) - there);
  recount(gap.item);
}

/// Whether the gap is dropped when the operation moves to the CPU: the operation writes at one of
/// its ends, and a value that the CPU writes does not stay on the GPU.
bool PlacementState::is_dropped_with(std::int32_t operation, const GapPlace& gap) const {
  const Item& item = problem_.items[index(gap.item)];
  const Touch& from = item.touches[index(gap.gap)];
  const Touch& to = item.touches[(index(gap.gap) + 1) % item.touches.size()];
  return (from.step == operation && from.writes) || (to.step == operation && to.writes);
}

Capacity PlacementState::cost_of_leaving(std::int32_t operation) {
  std::vector<std::int32_t> left;
  for (const std::int32_t place : gaps_beside(operation)) {
    if (resident_[index(place)] && is_dropped_with(operation, gaps()[index(place)])) {
      left.push_back(place);
    }
  }
  Capacity added = index_.cpu_cost(operation) - operation_cost(operation);
  for (const std::int32_t place : left) resident_[index(place)] = 0;
  gpu_[index(operation)] = 0;
  for (const TouchPlace& at : index_.touches_of(operation)) {
    added += item_cost(at.item) - item_cost_[index(at.item)];
  }
  gpu_[index(operation)] = 1;
  for (const std::int32_t place : left) resident_[index(place)] = 1;
  return added;
}

std::int64_t PlacementState::freed_by_leaving(std::int32_t operation, std::int32_t step) const {
  std::int64_t bytes = 0;
  for (const std::int32_t place : gaps_beside(operation)) {
    const GapPlace& gap = gaps()[index(place)];
    if (gap.inside.contains(step) && resident(gap) && is_dropped_with(operation, gap)) {
      bytes += problem_.items[index(gap.item)].bytes.count();
    }
  }
  return bytes;
}

bool PlacementState::has_room_for(std::int32_t operation) const {
  const EngineCost& engine = problem_.operations[index(operation)].engines.front();
  std::int64_t bytes =
      (engine.workspace + problem_.operations[index(operation)].temporaries).count();
  for (const TouchPlace& at : index_.touches_of(operation)) {
    if (!present(at.item, at.touch)) bytes += problem_.items[index(at.item)].bytes.count();
  }
  return memory_.at(operation) + bytes <= 0;
}

void PlacementState::move(std::int32_t operation, bool to_gpu) {
  if (on_gpu(operation) == to_gpu) return;
  if (!to_gpu) {
    for (const std::int32_t place : gaps_beside(operation)) {
      const GapPlace& gap = gaps()[index(place)];
      if (resident(gap) && is_dropped_with(operation, gap)) flip(gap);
    }
    if (engine(operation) != 0) set_engine(operation, 0);
  }
  log_.push_back({Change::Kind::device, operation, 0});
  flip_device(operation);
}

void PlacementState::flip_device(std::int32_t operation) {
  const auto add_presence = [&](std::int64_t sign) {
    std::int64_t bytes = operation_memory(operation);
    for (const TouchPlace& at : index_.touches_of(operation)) {
      if (present(at.item, at.touch)) bytes += problem_.items[index(at.item)].bytes.count();
    }
    add_memory(operation, sign * bytes);
  };
  add_presence(-1);
  cost_ -= operation_cost(operation);
  gpu_[index(operation)] = !gpu_[index(operation)];
  if (host_) host_->set_temporaries(operation, !gpu_[index(operation)]);
  settled_[index(operation)] = 0;
  cost_ += operation_cost(operation);
  add_presence(1);
  for (const TouchPlace& at : index_.touches_of(operation)) recount(at.item);
}

void PlacementState::set_engine(std::int32_t operation, std::int32_t engine) {
  log_.push_back({Change::Kind::engine, operation, engine_[index(operation)]});
  put_engine(operation, engine);
}

void PlacementState::put_engine(std::int32_t operation, std::int32_t engine) {
  cost_ -= operation_cost(operation);
  add_memory(operation, -operation_memory(operation));
  engine_[index(operation)] = engine;
  cost_ += operation_cost(operation);
  add_memory(operation, operation_memory(operation));
  settled_[index(operation)] = 0;
}

void PlacementState::undo_to(std::size_t mark) {
  while (log_.size() > mark) {
    const Change change = log_.back();
    log_.pop_back();
    switch (change.kind) {
      case Change::Kind::gap:
        flip_gap(change.index);
        break;
      case Change::Kind::device:
        flip_device(change.index);
        break;
      case Change::Kind::engine:
        put_engine(change.index, change.before);
        break;
    }
  }
}

Placement PlacementState::placement() const {
  Placement result;
  for (std::size_t t = 0; t < gpu_.size(); ++t) {
    result.device.push_back(gpu_[t] ? Device::gpu : Device::cpu);
    result.engine.push_back(gpu_[t] ? engine_[t] : 0);
  }
  for (std::size_t i = 0; i < problem_.items.size(); ++i) {
    const auto item = static_cast<std::int32_t>(i);
    std::vector<bool> present_here;
    present_here.reserve(problem_.items[i].touches.size());
    for (std::int32_t touch = 0; touch < std::ssize(problem_.items[i].touches); ++touch) {
      present_here.push_back(present(item, touch));
    }
    std::vector<bool> resident_here;
    resident_here.reserve(problem_.items[i].touches.size());
    for (std::int32_t gap = 0; gap < gap_count(problem_.items[i]); ++gap) {
      resident_here.push_back(is_kept(item, gap));
    }
    result.on_gpu.push_back(std::move(present_here));
    result.resident.push_back(std::move(resident_here));
  }
  return result;
}

}  // namespace stowage
