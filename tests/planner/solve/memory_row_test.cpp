#include "planner/solve/memory_row.hpp"

#include <doctest/doctest.h>

#include "planner/solve/placement_search.hpp"
#include "tests/planner/solve/random_problems.hpp"

namespace stowage {
namespace {

// Every placement within the limits under one choice of devices, engines left out: `visit` gets the
// chosen one of each item.
struct Placements {
  const ResidencyProblem& problem;
  const std::vector<Bytes>& limits;
  const DeviceAssignment& assignment;
  std::vector<std::int64_t> memory;
  std::vector<const ItemChoice*> chosen;

  void start() {
    for (std::size_t t = 0; t < limits.size(); ++t) {
      std::int64_t own = 0;
      if (assignment.device[t] == Device::gpu) {
        const Operation& operation = problem.operations[t];
        own = operation.engines.front().workspace.count();
        for (const EngineCost& e : operation.engines) own = std::min(own, e.workspace.count());
        own += operation.temporaries.count();
      }
      memory.push_back(own);
    }
  }

  template <typename Visit>
  void each(const Visit& visit) {
    if (chosen.size() == assignment.choices.size()) return visit(chosen);
    for (const ItemChoice& choice : assignment.choices[chosen.size()]) {
      bool fits = true;
      for (std::size_t t = 0; t < memory.size(); ++t) {
        memory[t] += choice.memory[t];
        fits = fits && memory[t] <= limits[t].count();
      }
      chosen.push_back(&choice);
      if (fits) each(visit);
      chosen.pop_back();
      for (std::size_t t = 0; t < memory.size(); ++t) memory[t] -= choice.memory[t];
    }
  }
};

std::int64_t use_by(const std::vector<const ItemChoice*>& chosen, const LimitRow& row) {
  std::int64_t use = 0;
  for (const MemoryTerm& term : row.terms) {
    const ItemChoice& choice = *chosen[static_cast<std::size_t>(term.item)];
    const auto& flags = term.gap ? choice.resident : choice.on_gpu;
    if (flags[static_cast<std::size_t>(term.index)]) use += term.weight;
  }
  return use;
}

}  // namespace

TEST_CASE("every placement within the limits keeps to rounded rows, a mixture does not") {
  Random random(41);
  int rows_found = 0;
  int tight = 0;
  for (int round = 0; round < 250; ++round) {
    CAPTURE(round);
    const ResidencyProblem problem = random_problem(random);
    const Bytes budget = memory_floor(problem).bytes + Bytes(below(random, 8) << 20);
    const std::vector<Bytes> limits(problem.operations.size(), budget);
    const CutModel model = make_cut_model(problem, limits);
    const PlacementIndex index(model);
    const Restrictions restrictions = restrictions_of(problem);
    const PackedPlacement all(cheapest_placement(model, restrictions, {}).greatest);
    const PackedPlacement none(nothing_resident(model));
    const double part = 0.1 * static_cast<double>(1 + below(random, 8));
    const MixedPresence mixture({{&all, part}, {&none, 1 - part}});
    std::vector<LimitRow> rows;
    for (std::int32_t step = 0; step < std::ssize(limits); ++step) {
      for (LimitRow& row : rounded_rows(model, index, restrictions, step, mixture, 20)) {
        const double use = part * use_of(row, all) + (1 - part) * use_of(row, none);
        CHECK(use > static_cast<double>(row.limit));
        rows.push_back(std::move(row));
      }
    }
    rows_found += static_cast<int>(rows.size());
    std::vector<bool> reached(rows.size(), false);
    for (const DeviceAssignment& assignment : all_assignments(problem)) {
      Placements placements{problem, limits, assignment, {}, {}};
      placements.start();
      std::size_t broken = 0;
      placements.each([&](const std::vector<const ItemChoice*>& chosen) {
        for (std::size_t r = 0; r < rows.size(); ++r) {
          const std::int64_t use = use_by(chosen, rows[r]);
          broken += use > rows[r].limit ? 1 : 0;
          reached[r] = reached[r] || use == rows[r].limit;
        }
      });
      CHECK(broken == 0);
    }
    for (const bool at_limit : reached) tight += at_limit ? 1 : 0;
  }
  CHECK(rows_found > 200);
  CHECK(tight > rows_found / 2);  // some placement is at the limit: it cannot be lowered
}

TEST_CASE("of three equal items that 2.5 must leave of, three must: the bound says so") {
  ResidencyProblem problem;
  for (int i = 0; i < 9; ++i) {
    problem.operations.push_back({.name = "op", .engines = {{0, Bytes()}}, .pin = Pin::gpu});
  }
  problem.operations[4].engines.front().workspace = 25_MiB;
  for (std::int32_t i = 0; i < 4; ++i) {
    problem.items.push_back({.name = "item",
                             .bytes = 10_MiB,
                             .touches = {{i, false, true}, {8 - i, true, false}},
                             .h2d_seconds = 1,
                             .d2h_seconds = 1});
  }
  const CutModel model =
      make_cut_model(problem, std::vector<Bytes>(problem.operations.size(), 40_MiB));
  const PlacementIndex index(model);
  const Restrictions free = restrictions_of(problem);
  // 15 MiB are left for 40: at the best price of a byte each item is worth its 10 MiB.
  const auto price = static_cast<std::int64_t>(2.0 / (10 << 20) / model.price_unit());
  const PricedCut by_bytes = cheapest_placement(model, free, {{4, price}});
  CHECK(by_bytes.bound_seconds == doctest::Approx(5).epsilon(1e-6));
  const PackedPlacement least(by_bytes.least), greatest(by_bytes.greatest);
  const MixedPresence mixture({{&least, 0.625}, {&greatest, 0.375}});
  const auto rows = rounded_rows(model, index, free, 4, mixture, 1);
  REQUIRE(rows.size() == 1);
  const auto each = static_cast<double>(rows[0].terms.front().weight);
  const auto row_price = static_cast<std::int64_t>(2.0 / each / model.price_unit());
  const PricedCut by_row = cheapest_placement(model, free, {}, {{&rows[0], row_price}});
  CHECK(by_row.bound_seconds == doctest::Approx(6).epsilon(1e-6));
}

}  // namespace stowage
