// The predicted effect of a move is the effect of making it.
#include "planner/solve/placement_state.hpp"

#include <doctest/doctest.h>

#include "planner/solve/placement_search.hpp"
#include "tests/planner/solve/random_problems.hpp"

namespace stowage {
namespace {

/// Moves and gaps flipped at random, where the state allows them.
void shuffle(Random& random, PlacementState& state, std::int32_t operations) {
  for (int i = 0; i < 12; ++i) {
    const auto operation = static_cast<std::int32_t>(below(random, operations));
    state.move(operation, below(random, 2) == 0);
    if (state.gaps().empty()) continue;
    const auto place = below(random, std::ssize(state.gaps()));
    const GapPlace& gap = state.gaps()[static_cast<std::size_t>(place)];
    if (state.resident(gap) || state.may_be_resident(gap)) state.flip(gap);
  }
}

}  // namespace

TEST_CASE("what moving an operation costs and frees is known before it moves") {
  Random random(41);
  int left = 0, freed = 0, fits = 0, does_not = 0;
  for (int round = 0; round < 1'500; ++round) {
    CAPTURE(round);
    ResidencyProblem problem = random_problem(random);
    for (Operation& operation : problem.operations) operation.pin = Pin::free;
    for (Item& item : problem.items) item.gap_pins.clear();
    const Bytes limit = memory_floor(problem).bytes + Bytes(below(random, 4) << 20);
    const CutModel model =
        make_cut_model(problem, std::vector<Bytes>(problem.operations.size(), limit));
    const PlacementIndex index(model);
    PlacementState state(model, index, nothing_resident(problem));
    const auto operations = static_cast<std::int32_t>(problem.operations.size());
    shuffle(random, state, operations);
    for (std::int32_t v = 0; v < operations; ++v) {
      const std::size_t mark = state.mark();
      const Capacity cost = state.cost();
      if (!state.on_gpu(v)) {
        const bool has_room = state.has_room_for(v);
        state.move(v, true);
        CHECK(has_room == (state.excess_at(v) <= 0));
        (has_room ? fits : does_not) += 1;
        state.undo_to(mark);
        continue;
      }
      std::vector<std::int64_t> before, told;
      for (std::int32_t t = 0; t < operations; ++t) {
        before.push_back(state.excess_at(t));
        told.push_back(t != v && state.on_gpu(t) ? state.freed_by_leaving(v, t) : 0);
      }
      const Capacity added = state.cost_of_leaving(v);
      CHECK(state.cost() == cost);
      state.move(v, false);
      CHECK(state.cost() - cost == added);
      for (std::int32_t t = 0; t < operations; ++t) {
        const auto at = static_cast<std::size_t>(t);
        if (t == v || !state.on_gpu(t)) continue;
        CHECK(before[at] - state.excess_at(t) == told[at]);
        freed += told[at] > 0 ? 1 : 0;
      }
      ++left;
      state.undo_to(mark);
    }
  }
  CHECK(left > 500);
  CHECK(freed > 50);
  CHECK(fits > 100);
  CHECK(does_not > 50);
}

TEST_CASE("an operation is unsettled by whatever may change what its move costs") {
  Random random(43);
  int unsettled = 0;
  for (int round = 0; round < 200; ++round) {
    CAPTURE(round);
    ResidencyProblem problem = random_problem(random);
    for (Operation& operation : problem.operations) operation.pin = Pin::free;
    for (Item& item : problem.items) item.gap_pins.clear();
    const CutModel model = make_cut_model(
        problem, std::vector<Bytes>(problem.operations.size(), Bytes(std::int64_t{1} << 40)));
    const PlacementIndex index(model);
    PlacementState state(model, index, nothing_resident(problem));
    const auto operations = static_cast<std::int32_t>(problem.operations.size());
    shuffle(random, state, operations);
    std::vector<Capacity> costs(problem.operations.size());
    for (std::int32_t v = 0; v < operations; ++v) {
      CHECK_FALSE(state.is_settled(v));
      if (!state.on_gpu(v)) continue;
      costs[static_cast<std::size_t>(v)] = state.cost_of_leaving(v);
      state.settle(v);
    }
    const auto moved = static_cast<std::int32_t>(below(random, operations));
    state.move(moved, !state.on_gpu(moved));
    for (std::int32_t v = 0; v < operations; ++v) {
      if (!state.is_settled(v)) {
        ++unsettled;
      } else {
        REQUIRE(state.on_gpu(v));
        CHECK(state.cost_of_leaving(v) == costs[static_cast<std::size_t>(v)]);
      }
    }
  }
  CHECK(unsettled > 200);
}

}  // namespace stowage
