// The host's memory beside the GPU's: prices on it in the cut, and placements within both.
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "planner/problem/host_use.hpp"
#include "planner/solve/placement_search.hpp"
#include "planner/solve/solve.hpp"
#include "tests/planner/solve/random_problems.hpp"

namespace stowage {
namespace {

constexpr std::int64_t mebi = std::int64_t{1} << 20;

Placement placement_of(const DeviceAssignment& assignment) {
  return {assignment.device, std::vector<std::int32_t>(assignment.device.size(), 0), {}, {}};
}

/// A choice with what it takes of the host, by step.
struct HostedChoice {
  const ItemChoice* choice = nullptr;
  std::vector<std::int64_t> pinned, all;
  bool is_priced_as_pinned = false;  ///< ever on the GPU, and ever on the host
};

std::vector<std::int64_t> counts(const std::vector<Bytes>& bytes) {
  std::vector<std::int64_t> result;
  result.reserve(bytes.size());
  for (const Bytes of : bytes) result.push_back(of.count());
  return result;
}

// The cut does not have the choice of a copy that comes beside a first read on the CPU so that the
// host can drop its own: no gap leads to it, and nothing on the GPU needs it yet.
bool comes_beside_the_cpu(const Item& item, const std::vector<Device>& device,
                          const ItemChoice& choice) {
  const bool on_cpu = device[static_cast<std::size_t>(item.touches[0].step)] == Device::cpu;
  return on_cpu && !item.wraps && choice.on_gpu[0];
}

std::vector<std::vector<HostedChoice>> hosted(const ResidencyProblem& problem,
                                              const DeviceAssignment& assignment) {
  std::vector<std::vector<HostedChoice>> result;
  for (std::size_t i = 0; i < problem.items.size(); ++i) {
    ResidencyProblem alone;
    alone.operations = problem.operations;
    for (Operation& operation : alone.operations) operation.temporaries = Bytes();
    alone.items.push_back(problem.items[i]);
    result.emplace_back();
    for (const ItemChoice& choice : assignment.choices[i]) {
      if (comes_beside_the_cpu(problem.items[i], assignment.device, choice)) continue;
      Placement placement = placement_of(assignment);
      placement.on_gpu = {choice.on_gpu};
      placement.resident = {choice.resident};
      const HostUse use = host_use(alone, placement);
      const bool ever = std::ranges::count(choice.on_gpu, true) > 0;
      result.back().push_back({&choice, counts(use.pinned), counts(use.all), ever});
    }
  }
  return result;
}

/// All placements within the limits of both sides.
struct BothSides {
  const ResidencyProblem& problem;
  const DeviceAssignment& assignment;
  const std::vector<std::vector<HostedChoice>>& choices;
  std::int64_t budget = 0;
  HostLimits host;
  std::vector<std::int64_t> memory, pinned, all;
  double best = std::numeric_limits<double>::infinity();

  bool add(const HostedChoice& choice, std::int64_t sign) {
    bool fits = true;
    for (std::size_t t = 0; t < memory.size(); ++t) {
      memory[t] += sign * choice.choice->memory[t];
      pinned[t] += sign * choice.pinned[t];
      all[t] += sign * choice.all[t];
      fits = fits && memory[t] <= budget && pinned[t] <= host.pinned.count() &&
             all[t] <= host.all.count();
    }
    return fits;
  }

  void finish(double cost) {
    for (std::size_t t = 0; t < memory.size(); ++t) {
      const Operation& operation = problem.operations[t];
      if (assignment.device[t] == Device::cpu) {
        cost += operation.cpu_seconds;
        continue;
      }
      double fastest = std::numeric_limits<double>::infinity();
      for (const EngineCost& engine : operation.engines) {
        const Bytes own = engine.workspace + operation.temporaries;
        if (memory[t] + own.count() <= budget) fastest = std::min(fastest, engine.seconds);
      }
      cost += fastest;
    }
    best = std::min(best, cost);
  }

  void place(std::size_t item, double cost) {
    if (cost >= best) return;
    if (item == choices.size()) return finish(cost);
    for (const HostedChoice& choice : choices[item]) {
      if (add(choice, 1)) place(item + 1, cost + choice.choice->seconds);
      add(choice, -1);
    }
  }
};

/// Infinite: there is none.
double cheapest_on_both_sides(const ResidencyProblem& problem,
                              const std::vector<DeviceAssignment>& assignments, Bytes budget,
                              const HostLimits& host) {
  double best = std::numeric_limits<double>::infinity();
  for (const DeviceAssignment& assignment : assignments) {
    const auto choices = hosted(problem, assignment);
    const std::vector<std::int64_t> none(problem.operations.size(), 0);
    std::vector<std::int64_t> all = none;
    bool fits = true;
    for (std::size_t t = 0; t < all.size(); ++t) {
      if (assignment.device[t] == Device::cpu) all[t] = problem.operations[t].temporaries.count();
      fits = fits && all[t] <= host.all.count();
    }
    if (!fits) continue;
    BothSides sides{problem, assignment, choices, budget.count(), host, none, none, all, best};
    sides.place(0, 0);
    best = sides.best;
  }
  return best;
}

Prices sparse_prices(Random& random, const CutModel& model) {
  Prices prices;
  const int shift = model.unit_exponent + model.price_bits - 33;
  for (std::int32_t t = 0; t < std::ssize(model.limits); ++t) {
    const std::int64_t price = below(random, 3) == 0 ? below(random, 12) : 0;
    if (price > 0) prices.push_back({t, price << shift});
  }
  return prices;
}

std::vector<double> price_by_step(const Prices& prices, const CutModel& model) {
  std::vector<double> price(model.limits.size(), 0);
  for (const StepPrice& p : prices) {
    price[static_cast<std::size_t>(p.step)] = static_cast<double>(p.price) * model.price_unit();
  }
  return price;
}

double worth(const std::vector<double>& price, const std::vector<std::int64_t>& bytes) {
  double sum = 0;
  for (std::size_t t = 0; t < price.size(); ++t) sum += price[t] * static_cast<double>(bytes[t]);
  return sum;
}

/// The least of cost and of both sides' memory at these prices, over all placements.
double cheapest_priced_host(const ResidencyProblem& problem,
                            const std::vector<DeviceAssignment>& assignments,
                            const std::vector<double>& gpu, const std::vector<double>& pinned,
                            const std::vector<double>& all) {
  double best = std::numeric_limits<double>::infinity();
  for (const DeviceAssignment& assignment : assignments) {
    double cost = 0;
    for (std::size_t t = 0; t < gpu.size(); ++t) {
      const Operation& operation = problem.operations[t];
      if (assignment.device[t] == Device::cpu) {
        cost += operation.cpu_seconds + all[t] * static_cast<double>(operation.temporaries.count());
        continue;
      }
      double least = std::numeric_limits<double>::infinity();
      for (const EngineCost& engine : operation.engines) {
        const Bytes own = engine.workspace + operation.temporaries;
        least = std::min(least, engine.seconds + gpu[t] * static_cast<double>(own.count()));
      }
      cost += least;
    }
    for (const std::vector<HostedChoice>& choices : hosted(problem, assignment)) {
      double least = std::numeric_limits<double>::infinity();
      for (const HostedChoice& choice : choices) {
        double priced =
            choice.choice->seconds + worth(gpu, choice.choice->memory) + worth(all, choice.all);
        if (choice.is_priced_as_pinned) priced += worth(pinned, choice.all);
        least = std::min(least, priced);
      }
      cost += least;
    }
    best = std::min(best, cost);
  }
  return best;
}

}  // namespace

TEST_CASE("residency cut: with prices on the host it is the best of all placements") {
  Random random(90210);
  int priced = 0;
  for (int round = 0; round < 1'500; ++round) {
    CAPTURE(round);
    const ResidencyProblem problem = random_problem(random);
    const auto assignments = all_assignments(problem);
    const std::vector<Bytes> limits(problem.operations.size(), Bytes(mebi));
    const CutModel model = make_cut_model(problem, limits, {Bytes(mebi), Bytes(mebi)});
    const Restrictions restrictions = restrictions_of(problem);
    const Prices steps = sparse_prices(random, model);
    const HostPrices host{sparse_prices(random, model), sparse_prices(random, model)};
    const PricedCut cut = cheapest_placement(model, restrictions, steps, {}, host);
    REQUIRE_FALSE(cut.contradictory);
    const std::vector<double> gpu = price_by_step(steps, model);
    const std::vector<double> pinned = price_by_step(host.pinned, model);
    const std::vector<double> all = price_by_step(host.all, model);
    REQUIRE(cut.value_seconds == cheapest_priced_host(problem, assignments, gpu, pinned, all));
    REQUIRE(evaluate(problem, cut.least).inconsistency == "");
    REQUIRE(evaluate(problem, cut.greatest).inconsistency == "");
    const double without = cheapest_placement(model, restrictions, steps).value_seconds;
    priced += cut.value_seconds > without ? 1 : 0;
  }
  CHECK(priced > 500);
}

TEST_CASE("the search knows what its state takes of the host, after any moves") {
  Random random(77);
  WorkBudget unlimited;
  for (int round = 0; round < 500; ++round) {
    CAPTURE(round);
    const ResidencyProblem problem = random_problem(random);
    const std::vector<Bytes> limits(problem.operations.size(),
                                    memory_floor(problem).bytes + Bytes(below(random, 8) * mebi));
    const HostLimits host{Bytes(below(random, 20) * mebi), Bytes(below(random, 30) * mebi)};
    const CutModel model = make_cut_model(problem, limits, host);
    const PlacementIndex index(model);
    PlacementSearch search(model, index, nothing_resident(model), {}, 500, unlimited);
    const bool fits = search.repair();
    if (fits) search.fill();
    if (fits) search.improve();
    const PlacementState& state = search.state();
    CHECK(state.excess() <= 0);
    const HostUse use = host_use(problem, state.placement());
    std::int64_t beyond = std::numeric_limits<std::int64_t>::min();
    for (std::int32_t t = 0; t < std::ssize(use.all); ++t) {
      const std::int64_t pinned = (use.pinned[static_cast<std::size_t>(t)] - host.pinned).count();
      const std::int64_t all = (use.all[static_cast<std::size_t>(t)] - host.all).count();
      CHECK(state.host()->excess_at({true, t}) == pinned);
      CHECK(state.host()->excess_at({false, t}) == all);
      beyond = std::max({beyond, pinned, all});
    }
    CHECK(fits == (beyond <= 0));
    CHECK(state.fits() == fits);
  }
}

TEST_CASE("solve: within the limits of both sides it finds what there is, and the cheapest often") {
  constexpr unsigned seed = 271;
  Random random(seed);
  int bound_by_host = 0, found = 0, optimal = 0;
  double sum = 0, worst = 1;
  for (int round = 0; round < 4'000; ++round) {
    INFO("seed ", seed, " round ", round);
    ResidencyProblem problem = random_problem(random);
    for (Operation& operation : problem.operations) {
      if (below(random, 2) == 0) operation.pin = Pin::free;
    }
    const auto assignments = all_assignments(problem);
    const Bytes budget = memory_floor(problem).bytes + Bytes(below(random, 10) * mebi);
    const Result<Solution> plain = solve(problem, {.budget = budget, .target_gap = 0});
    REQUIRE(plain.has_value());
    const HostUse unlimited = host_use(problem, plain->placement);
    const auto limit = [&](const std::vector<Bytes>& by_step) {
      const std::int64_t most = std::ranges::max_element(by_step)->count() / mebi;
      return below(random, 3) == 0 ? HostLimits::none : Bytes(below(random, most + 1) * mebi);
    };
    const HostLimits host{limit(unlimited.pinned), limit(unlimited.all)};
    const Result<Solution> solution =
        solve(problem, {.budget = budget, .host = host, .target_gap = 0});
    REQUIRE(solution.has_value());
    REQUIRE(solution->evaluation.peak <= budget);
    const HostUse use = host_use(problem, solution->placement);
    const bool held = *std::ranges::max_element(use.pinned) <= host.pinned &&
                      *std::ranges::max_element(use.all) <= host.all;
    REQUIRE(held == (solution->beyond_host == Bytes()));
    const double best = cheapest_on_both_sides(problem, assignments, budget, host);
    REQUIRE((!held || solution->evaluation.cost_seconds >= best * (1 - 1e-12)));
    const auto anywhere = cheapest_within(problem, assignments, budget);
    REQUIRE(solution->cost_lower_bound_seconds <= *anywhere * (1 + 1e-12));
    if (best == std::numeric_limits<double>::infinity() || best <= *anywhere) continue;
    ++bound_by_host;
    if (!held) continue;
    ++found;
    const double ratio = best > 0 ? solution->evaluation.cost_seconds / best : 1;
    optimal += ratio <= 1 + 1e-12 ? 1 : 0;
    sum += ratio - 1;
    worst = std::max(worst, ratio);
  }
  MESSAGE(bound_by_host, " problems with a placement where the host binds: found ", found,
          ", optimal ", optimal, ", mean ratio ", 1 + sum / found, ", worst ", worst);
  CHECK(bound_by_host > 100);
  CHECK(found > 0.97 * bound_by_host);
  CHECK(optimal > 0.95 * found);
  CHECK(sum < 0.02 * found);
}

}  // namespace stowage
