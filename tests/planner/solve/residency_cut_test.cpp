#include "planner/solve/residency_cut.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/planner/solve/random_problems.hpp"

namespace stowage {
namespace {

double priced(const Evaluation& evaluation, const std::vector<double>& price) {
  double sum = evaluation.cost_seconds;
  for (std::size_t t = 0; t < price.size(); ++t) {
    sum += price[t] * static_cast<double>(evaluation.memory[t].count());
  }
  return sum;
}

CutModel model_of(const ResidencyProblem& problem, Bytes limit) {
  return make_cut_model(problem, std::vector<Bytes>(problem.operations.size(), limit));
}

// Of a CPU read the cut leaves out copies that no gap leads to or from: a placement without them
// costs no more and takes no more memory.
bool has_idle_copy(const Item& item, const std::vector<Device>& device, const ItemChoice& choice) {
  for (std::size_t i = 0; i < item.touches.size(); ++i) {
    const bool cpu = device[static_cast<std::size_t>(item.touches[i].step)] == Device::cpu;
    if (!cpu || !choice.on_gpu[i]) continue;
    const bool last = i + 1 == item.touches.size();
    const bool led_to = i > 0 || item.wraps;
    const bool read_next = last ? item.wraps && item.touches[0].reads : item.touches[i + 1].reads;
    if (!led_to || !read_next) return true;
  }
  return false;
}

// Prices of whole multiples of 2^-33 s a byte: with sizes in MiB and times in 2^-10 s every sum is
// exact, so that equality can be asked for.
Prices random_prices(Random& random, const CutModel& model) {
  Prices prices;
  const auto steps = static_cast<std::int32_t>(model.limits.size());
  for (std::int32_t t = 0; t < steps; ++t) {
    const std::int64_t step_price = below(random, 2) == 0 ? 0 : below(random, 12);
    const int shift = model.unit_exponent + model.price_bits - 33;
    if (step_price > 0) prices.push_back({t, step_price << shift});
  }
  return prices;
}

std::vector<double> in_seconds(const Prices& prices, const CutModel& model) {
  std::vector<double> price(model.limits.size(), 0);
  for (const StepPrice& p : prices) {
    price[static_cast<std::size_t>(p.step)] = static_cast<double>(p.price) * model.price_unit();
  }
  return price;
}

}  // namespace

TEST_CASE("residency cut: equals the best of all placements, at no and at random prices") {
  constexpr unsigned seed = 4711;
  INFO("seed ", seed);
  Random random(seed);
  for (int round = 0; round < 2500; ++round) {
    INFO("round ", round);
    const ResidencyProblem problem = random_problem(random);
    REQUIRE(ill_formed(problem) == "");
    const std::vector<DeviceAssignment> assignments = all_assignments(problem);
    const CutModel model = model_of(problem, Bytes(1 << 20));
    const Restrictions restrictions = restrictions_of(problem);
    for (const Prices& prices : {Prices{}, random_prices(random, model)}) {
      const std::vector<double> price = in_seconds(prices, model);
      const PricedCut cut = cheapest_placement(model, restrictions, prices);
      REQUIRE_FALSE(cut.contradictory);
      REQUIRE(cut.value_seconds == cheapest_priced(problem, assignments, price));
      for (const Placement& placement : {cut.least, cut.greatest}) {
        const Evaluation evaluation = evaluate(problem, placement);
        REQUIRE(evaluation.inconsistency == "");
        REQUIRE(priced(evaluation, price) == cut.value_seconds);
      }
    }
  }
}

TEST_CASE("residency cut: the bound is below every placement within the limit") {
  constexpr unsigned seed = 815;
  INFO("seed ", seed);
  Random random(seed);
  int binding = 0;
  for (int round = 0; round < 600; ++round) {
    INFO("round ", round);
    const ResidencyProblem problem = random_problem(random);
    const Bytes budget = memory_floor(problem).bytes + Bytes(below(random, 10) << 20);
    const auto best = cheapest_within(problem, all_assignments(problem), budget);
    REQUIRE(best.has_value());
    const CutModel model = model_of(problem, budget);
    const PricedCut cut =
        cheapest_placement(model, restrictions_of(problem), random_prices(random, model));
    REQUIRE(cut.bound_seconds <= *best);
    binding += cut.bound_seconds > 0 ? 1 : 0;
  }
  CHECK(binding > 50);
}

TEST_CASE("residency cut: pinned gaps are kept to, or contradict") {
  constexpr unsigned seed = 99;
  INFO("seed ", seed);
  Random random(seed);
  int contradictions = 0;
  for (int round = 0; round < 1500; ++round) {
    INFO("round ", round);
    const ResidencyProblem problem = random_problem(random);
    const std::size_t item = static_cast<std::size_t>(below(random, std::ssize(problem.items)));
    Restrictions restrictions = restrictions_of(problem);
    if (restrictions.gap[item].empty()) continue;
    const auto gap = static_cast<std::size_t>(below(random, std::ssize(restrictions.gap[item])));
    const std::size_t next = (gap + 1) % problem.items[item].touches.size();
    if (!problem.items[item].touches[next].reads) continue;  // such a gap is never worth keeping
    const bool keep = below(random, 2) == 0;
    restrictions.gap[item][gap] = keep ? GapPin::resident : GapPin::dropped;

    // All placements, less those that do not keep to the pin.
    std::vector<DeviceAssignment> assignments = all_assignments(problem);
    for (DeviceAssignment& assignment : assignments) {
      std::erase_if(assignment.choices[item], [&](const ItemChoice& choice) {
        return choice.resident[gap] != keep ||
               has_idle_copy(problem.items[item], assignment.device, choice);
      });
    }
    const CutModel model = model_of(problem, Bytes());
    const Prices prices = random_prices(random, model);
    const std::vector<double> price = in_seconds(prices, model);
    const double best = cheapest_priced(problem, assignments, price);
    const PricedCut cut = cheapest_placement(model, restrictions, prices);
    REQUIRE(cut.contradictory == std::isinf(best));
    contradictions += cut.contradictory ? 1 : 0;
    if (cut.contradictory) continue;
    REQUIRE(cut.value_seconds == best);
    REQUIRE(cut.least.resident[item][gap] == keep);
    REQUIRE(evaluate(problem, cut.greatest).inconsistency == "");
  }
  CHECK(contradictions > 20);
}

TEST_CASE("residency cut: a term beyond every placement's cost does not overflow") {
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    const ResidencyProblem problem = random_problem(random);
    const CutModel model = model_of(problem, memory_floor(problem).bytes);
    Prices prices;
    for (std::int32_t t = 0; t < std::ssize(problem.operations); ++t) {
      prices.push_back({t, CutModel::highest_price});
    }
    const PricedCut cut = cheapest_placement(model, restrictions_of(problem), prices);
    REQUIRE_FALSE(cut.contradictory);
    REQUIRE(evaluate(problem, cut.least).inconsistency == "");
    REQUIRE(
        cut.bound_seconds <=
        cheapest_within(problem, all_assignments(problem), memory_floor(problem).bytes).value());
  }
}

}  // namespace stowage
