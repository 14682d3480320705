#include "planner/solve/placement_search.hpp"

#include <algorithm>
#include <cassert>
#include <tuple>
#include <utility>

#include "planner/solve/cheapest_relief.hpp"
#include "planner/solve/host_relief.hpp"

namespace stowage {

namespace {

std::size_t at(std::int32_t i) { return static_cast<std::size_t>(i); }

// Work (work_budget.hpp): of 32 moves looked at, and of counting a placement once.
constexpr int polled_every = 32;
constexpr std::int64_t work_of_polled = 5;
std::int64_t work_of_state(const ResidencyProblem& problem) {
  return static_cast<std::int64_t>(problem.operations.size() + problem.items.size()) / 8;
}

}  // namespace

PlacementSearch::PlacementSearch(const CutModel& model, const PlacementIndex& index,
                                 const Placement& start, const Prices& prices, std::int64_t effort,
                                 WorkBudget& work)
    : problem_(*model.problem),
      index_(index),
      state_(model, index, start),
      prices_(prices, model.problem->operations.size()),
      effort_(effort),
      work_(work) {
  work_.spend(work_of_state(problem_));
  for (std::int32_t v = 0; v < std::ssize(problem_.operations); ++v) {
    if (problem_.operations[at(v)].pin == Pin::free) free_operations_.push_back(v);
  }
}

bool PlacementSearch::spend(std::int64_t moves) {
  effort_ -= moves;
  return effort_ > 0 && !stopped();
}

// Looks whether the work is over only once in 32 calls: most loops pass here every microsecond.
bool PlacementSearch::stopped() {
  if (!stopped_ && unpolled_++ % polled_every == 0) {
    work_.spend(work_of_polled);
    stopped_ = work_.is_over();
  }
  return stopped_;
}

bool PlacementSearch::movable(std::int32_t operation) const {
  return operation != kept_operation_ && problem_.operations[at(operation)].pin == Pin::free;
}

// The bytes of a gap, weighted by the prices of its steps; where nothing has a price a byte is
// nearly free.
double PlacementSearch::weight(const GapPlace& gap) const {
  const double total = prices_.total();
  const auto bytes = static_cast<double>(problem_.items[at(gap.item)].bytes.count());
  return (bytes + 1) * (total > 0 ? prices_.in(gap.inside) / total + 1e-3 : 1);
}

bool PlacementSearch::apply(const Move& move) {
  switch (move.kind) {
    case Move::Kind::gap: {
      const GapPlace& gap = state_.gaps()[at(move.index)];
      if (!state_.resident(gap)) return false;
      state_.flip(gap);
      return true;
    }
    case Move::Kind::copies: {
      bool changed = false;
      for (const std::int32_t place : state_.gaps_beside(move.index)) {
        const GapPlace& gap = state_.gaps()[at(place)];
        if (gap.item != move.detail || !state_.resident(gap)) continue;
        if (state_.must_be_resident(gap)) continue;
        state_.flip(gap);
        changed = true;
      }
      return changed;
    }
    case Move::Kind::operation:
      if (!state_.on_gpu(move.index)) return false;
      state_.move(move.index, false);
      return true;
    case Move::Kind::engine:
      if (!state_.on_gpu(move.index)) return false;
      state_.set_engine(move.index, move.detail);
      return true;
  }
  return false;
}

void PlacementSearch::measure(std::int32_t step, Move move, std::vector<Move>& moves) {
  const std::size_t mark = state_.mark();
  const Capacity cost = state_.cost();
  const std::int64_t excess = state_.excess_at(step);
  apply(move);
  move.cost = state_.cost() - cost;
  move.bytes = excess - state_.excess_at(step);
  state_.undo_to(mark);
  effort_ -= 4;
  if (move.bytes > 0) moves.push_back(move);
}

void PlacementSearch::relief_by_gaps(std::int32_t step, std::vector<Move>& moves) {
  for (const std::int32_t g : over_) {
    const GapPlace& gap = state_.gaps()[at(g)];
    if (g == kept_gap_ || !state_.resident(gap)) continue;
    if (state_.must_be_resident(gap) || (!kept_on_gpu_.empty() && kept_on_gpu_[at(gap.item)]))
      continue;
    const std::int64_t bytes = problem_.items[at(gap.item)].bytes.count();
    if (bytes > 0) moves.push_back({Move::Kind::gap, g, 0, state_.flip_cost(gap), bytes});
    --effort_;
  }
  // Copies that stay beside the reads of the step's own operation on the CPU.
  if (state_.on_gpu(step)) return;
  std::int32_t last = -1;
  for (const std::int32_t place : state_.gaps_beside(step)) {
    const GapPlace& gap = state_.gaps()[at(place)];
    if (gap.item == last || place == kept_gap_ || !state_.resident(gap)) continue;
    last = gap.item;
    measure(step, {Move::Kind::copies, step, gap.item}, moves);
  }
}

// Moves of the operation at the step and of those at either end of a gap that is resident over it.
void PlacementSearch::relief_by_operations(std::int32_t step, std::vector<Move>& moves) {
  std::vector<std::int32_t> candidates{step};
  for (const std::int32_t g : over_) {
    const GapPlace& gap = state_.gaps()[at(g)];
    if (!state_.resident(gap)) continue;
    const std::vector<Touch>& touches = problem_.items[at(gap.item)].touches;
    candidates.push_back(touches[at(gap.gap)].step);
    candidates.push_back(touches[(at(gap.gap) + 1) % touches.size()].step);
  }
  std::sort(candidates.begin(), candidates.end());
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  for (const std::int32_t v : candidates) {
    if (!movable(v) || !state_.on_gpu(v)) continue;
    const auto beside = state_.gaps_beside(v);
    const bool kept = std::find(beside.begin(), beside.end(), kept_gap_) != beside.end();
    if (stopped()) return;
    if (kept || is_kept_on_gpu(v)) continue;
    if (v == step || !state_.on_gpu(step)) {
      measure(step, {Move::Kind::operation, v}, moves);
      continue;
    }
    --effort_;
    const std::int64_t bytes = state_.freed_by_leaving(v, step);
    if (bytes > 0) {
      moves.push_back({Move::Kind::operation, v, 0, state_.cost_of_leaving(v), bytes});
    }
  }
}

void PlacementSearch::relief_by_engines(std::int32_t step, std::vector<Move>& moves) {
  if (!state_.on_gpu(step)) return;
  const auto engines = static_cast<std::int32_t>(problem_.operations[at(step)].engines.size());
  for (std::int32_t k = 0; k < engines && engines > 1; ++k) {
    if (k != state_.engine(step)) measure(step, {Move::Kind::engine, step, k}, moves);
  }
}

bool PlacementSearch::relieve(std::int32_t step) {
  std::vector<Move> moves;
  index_.gaps_over(step, over_);
  relief_by_gaps(step, moves);
  relief_by_operations(step, moves);
  relief_by_engines(step, moves);
  return relieve_cheapest_first(
      moves, [&] { return state_.excess_at(step); }, [&](const Move& move) { apply(move); },
      [&] { return stopped(); });
}

bool PlacementSearch::is_kept_on_gpu(std::int32_t operation) const {
  if (kept_on_gpu_.empty()) return false;
  const auto touches = index_.touches_of(operation);
  return std::any_of(touches.begin(), touches.end(),
                     [&](const TouchPlace& touch) { return kept_on_gpu_[at(touch.item)]; });
}

bool PlacementSearch::repair() {
  return state_.host() == nullptr ? repair_on_gpu() : repair_on_both_sides();
}

bool PlacementSearch::repair_on_gpu() {
  while (state_.excess() > 0) {
    if (stopped() || !relieve(state_.worst_step())) return false;
  }
  return true;
}

// What one side frees the other has to hold, so repairs of the two sides may alternate several
// times; items kept on the GPU for the host stay there.
bool PlacementSearch::repair_on_both_sides() {
  constexpr int most_turns = 12;
  if (!repair_on_gpu()) return false;
  const std::size_t fitted = state_.mark();
  kept_on_gpu_.assign(problem_.items.size(), 0);
  bool fits = state_.fits();
  for (int turn = 0; !fits && turn < most_turns; ++turn) {
    if (stopped() || !relieve_host(state_, index_, prices_, kept_on_gpu_, effort_)) break;
    if (state_.host()->excess() <= 0 || turn % 2 == 1) {
      if (!repair_on_gpu()) break;
      fits = state_.fits();
    }
  }
  kept_on_gpu_.clear();
  if (!fits) state_.undo_to(fitted);
  return fits;
}

std::int64_t PlacementSearch::beyond_host() const {
  return state_.host() ? std::max<std::int64_t>(state_.host()->excess(), 0) : 0;
}

bool PlacementSearch::is_within(std::int64_t beyond) const {
  return state_.excess() <= 0 && beyond_host() <= beyond;
}

bool PlacementSearch::fill_gaps() {
  struct Chance {
    double density;
    std::int32_t gap;
  };
  std::vector<Chance> chances;
  for (std::int32_t g = 0; g < std::ssize(state_.gaps()); ++g) {
    const GapPlace& gap = state_.gaps()[at(g)];
    if (g == kept_gap_ || state_.resident(gap) || !state_.may_be_resident(gap)) continue;
    const std::int64_t bytes = problem_.items[at(gap.item)].bytes.count();
    if (stopped()) return false;
    if (state_.excess_in(gap) > -bytes) continue;
    const Capacity cost = state_.flip_cost(gap);
    --effort_;
    if (cost < 0) chances.push_back({static_cast<double>(cost) / weight(gap), g});
  }
  std::sort(chances.begin(), chances.end(), [](const Chance& a, const Chance& b) {
    return std::tie(a.density, a.gap) < std::tie(b.density, b.gap);
  });
  bool changed = false;
  for (const Chance& chance : chances) {
    if (stopped()) return changed;
    const GapPlace& gap = state_.gaps()[at(chance.gap)];
    const std::int64_t beyond = beyond_host();
    const std::size_t mark = state_.mark();
    const Capacity cost = state_.cost();
    state_.flip(gap);
    if (!is_within(beyond) || state_.cost() >= cost)
      state_.undo_to(mark);
    else
      changed = true;
  }
  return changed;
}

// Moves an operation to the GPU together with the gaps beside it, which make it worth most.
bool PlacementSearch::try_on_gpu(std::int32_t operation) {
  if (!state_.has_room_for(operation)) return false;
  const std::int64_t beyond = beyond_host();
  const std::size_t mark = state_.mark();
  const Capacity before = state_.cost();
  state_.move(operation, true);
  effort_ -= 4;
  if (state_.excess() <= 0) {
    for (const std::int32_t place : state_.gaps_beside(operation)) {
      const GapPlace& gap = state_.gaps()[at(place)];
      if (state_.resident(gap) || !state_.may_be_resident(gap)) continue;
      const std::size_t here = state_.mark();
      const Capacity cost = state_.cost();
      state_.flip(gap);
      if (state_.excess() > 0 || state_.cost() > cost) state_.undo_to(here);
    }
  }
  if (is_within(beyond) && state_.cost() < before) return true;
  state_.undo_to(mark);
  return false;
}

bool PlacementSearch::fill_operations() {
  bool changed = false;
  for (const std::int32_t v : free_operations_) {
    if (!movable(v)) continue;
    if (stopped()) return changed;
    if (!state_.on_gpu(v)) {
      changed = try_on_gpu(v) || changed;
      continue;
    }
    if (state_.is_settled(v)) continue;
    --effort_;
    const std::int64_t beyond = beyond_host();
    const std::size_t mark = state_.mark();
    const bool leaves = state_.cost_of_leaving(v) < 0;
    if (leaves) state_.move(v, false);
    if (leaves && is_within(beyond)) {
      changed = true;
    } else {
      state_.undo_to(mark);
      state_.settle(v);
    }
  }
  return changed;
}

void PlacementSearch::fill() {
  constexpr int most_passes = 4;
  for (int pass = 0; pass < most_passes; ++pass) {
    const bool gaps = fill_gaps();
    const bool operations = fill_operations();
    if ((!gaps && !operations) || stopped()) return;
  }
}

void PlacementSearch::settle_engines() {
  for (std::int32_t v = 0; v < std::ssize(problem_.operations); ++v) {
    const std::vector<EngineCost>& engines = problem_.operations[at(v)].engines;
    if (!state_.on_gpu(v) || engines.size() < 2) continue;
    if (stopped()) return;
    std::vector<std::int32_t> order;
    for (std::int32_t k = 0; k < std::ssize(engines); ++k) order.push_back(k);
    std::stable_sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
      return engines[at(a)].seconds < engines[at(b)].seconds;
    });
    const std::size_t mark = state_.mark();
    for (const std::int32_t k : order) {
      state_.set_engine(v, k);
      if (state_.excess() <= 0) break;
      state_.undo_to(mark);
    }
  }
}

bool PlacementSearch::keep_if_cheaper(std::size_t mark, Capacity before) {
  if (state_.fits() && state_.cost() < before) return true;
  state_.undo_to(mark);
  return false;
}

bool PlacementSearch::flip_gap(std::int32_t g) {
  const GapPlace& gap = state_.gaps()[at(g)];
  const bool kept = state_.resident(gap);
  if (kept ? state_.must_be_resident(gap) : !state_.may_be_resident(gap)) return false;
  const std::size_t mark = state_.mark();
  state_.flip(gap);
  kept_gap_ = g;
  const bool fits = repair();
  if (fits) fill();
  kept_gap_ = -1;
  if (!fits) state_.undo_to(mark);
  return fits;
}

bool PlacementSearch::eject_for_gap(std::int32_t g) {
  const GapPlace& gap = state_.gaps()[at(g)];
  if (!state_.resident(gap) && state_.may_be_resident(gap) && state_.flip_cost(gap) >= 0) {
    return false;
  }
  const std::size_t mark = state_.mark();
  const Capacity before = state_.cost();
  if (!flip_gap(g)) return false;
  fill();
  return keep_if_cheaper(mark, before);
}

bool PlacementSearch::eject_for_operation(std::int32_t operation) {
  const std::size_t mark = state_.mark();
  const Capacity before = state_.cost();
  const bool to_gpu = !state_.on_gpu(operation);
  state_.move(operation, to_gpu);
  for (const std::int32_t place : state_.gaps_beside(operation)) {
    const GapPlace& gap = state_.gaps()[at(place)];
    if (to_gpu && !state_.resident(gap) && state_.may_be_resident(gap)) state_.flip(gap);
  }
  kept_operation_ = operation;
  const bool fits = repair();
  if (fits) fill();
  kept_operation_ = -1;
  return keep_if_cheaper(mark, before);
}

void PlacementSearch::improve() {
  assert(state_.fits());
  bool changed = true;
  while (changed) {
    changed = false;
    for (std::int32_t g = 0; g < std::ssize(state_.gaps()); ++g) {
      if (!spend(1)) return;
      changed = eject_for_gap(g) || changed;
    }
    for (const std::int32_t v : free_operations_) {
      if (!spend(1)) return;
      changed = eject_for_operation(v) || changed;
    }
  }
}

Placement nothing_resident(const ResidencyProblem& problem) {
  Placement placement;
  for (const Operation& operation : problem.operations) {
    const bool gpu = operation.pin == Pin::gpu;
    std::size_t least = 0;
    for (std::size_t k = 1; k < operation.engines.size(); ++k) {
      if (operation.engines[k].workspace < operation.engines[least].workspace) least = k;
    }
    placement.device.push_back(gpu ? Device::gpu : Device::cpu);
    placement.engine.push_back(gpu ? static_cast<std::int32_t>(least) : 0);
  }
  for (const Item& item : problem.items) {
    std::vector<bool> on_gpu;
    for (const Touch& touch : item.touches) {
      on_gpu.push_back(placement.device[at(touch.step)] == Device::gpu);
    }
    std::vector<bool> resident(at(gap_count(item)), false);
    for (std::int32_t gap = 0; gap < gap_count(item); ++gap) {
      if (gap_pin(item, gap) != GapPin::resident) continue;
      resident[at(gap)] = true;
      on_gpu[at(gap)] = on_gpu[(at(gap) + 1) % on_gpu.size()] = true;
    }
    placement.on_gpu.push_back(std::move(on_gpu));
    placement.resident.push_back(std::move(resident));
  }
  return placement;
}

// Keeps operations in their order, then storages in theirs, each as a whole where it fits.
Placement filled_in_order(const CutModel& model, const PlacementIndex& index, WorkBudget& work) {
  constexpr std::size_t in_a_row = 256;
  PlacementState state(model, index, nothing_resident(*model.problem));
  work.spend(8 * work_of_state(*model.problem));
  for (std::int32_t v = 0; v < std::ssize(model.problem->operations); ++v) {
    if (model.problem->operations[at(v)].pin != Pin::free) continue;
    if (at(v) % in_a_row == 0 && work.is_over()) return state.placement();
    const std::size_t mark = state.mark();
    state.move(v, true);
    if (state.excess() > 0) state.undo_to(mark);
  }
  std::size_t mark = state.mark();
  for (std::size_t g = 0; g < state.gaps().size(); ++g) {
    const GapPlace& gap = state.gaps()[g];
    if (gap.gap == 0) mark = state.mark();
    if (g % in_a_row == 0 && work.is_over()) break;
    if (!state.may_be_resident(gap)) continue;
    state.flip(gap);
    if (state.excess() > 0) state.undo_to(mark);
  }
  return state.placement();
}

}  // namespace stowage
