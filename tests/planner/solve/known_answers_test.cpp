// Problems whose answers are known from the literature or by hand.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "planner/solve/solve.hpp"
#include "tests/planner/plan/step_sketch.hpp"

namespace stowage {
namespace {

Solution solved(const ResidencyProblem& problem, Bytes budget) {
  const Result<Solution> solution = solve(problem, {.budget = budget, .target_gap = 0});
  REQUIRE_MESSAGE(solution.has_value(), render(solution.error()));
  return *solution;
}

Bytes peak_of(const ResidencyProblem& problem) {
  return solved(problem, Bytes(std::int64_t{1} << 50)).evaluation.peak;
}

// Mixed precision as in ZeRO-Offload (Ren et al. 2021): fp16 parameters and gradients beside the
// GPU's compute, fp32 master, momentum and variance beside the update. The update is one operation,
// as there: it reads the gradients and writes the parameters.
constexpr std::int64_t parameters = 100'000'000;
constexpr Bytes activations{200'000'000};

ResidencyProblem zero_offload(Pin update) {
  StepSketch step(round_rates());
  const auto half = step.storage("parameters", Bytes(2 * parameters), Life::state);
  const auto gradients = step.storage("gradients", Bytes(2 * parameters));
  const auto master = step.storage("master", Bytes(4 * parameters), Life::state);
  const auto momentum = step.storage("momentum", Bytes(4 * parameters), Life::state);
  const auto variance = step.storage("variance", Bytes(4 * parameters), Life::state);
  const auto saved = step.storage("activations", activations);
  step.operation("forward", Pin::gpu, {half}, {saved}, 1e12);
  step.operation("backward", Pin::gpu, {half, saved}, {gradients}, 2e12);
  step.operation("update", update, {gradients, master, momentum, variance},
                 {half, master, momentum, variance}, 1e9);
  return step.problem();
}

}  // namespace

TEST_CASE("ZeRO-Offload: 2M down and 2M up from the floor to 16M plus activations, 0 above") {
  const ResidencyProblem problem = zero_offload(Pin::free);
  const Bytes floor = memory_floor(problem).bytes;
  const Bytes all = Bytes(16 * parameters) + activations;
  CHECK(floor == Bytes(4 * parameters) + activations);  // backward: parameters, gradients, saved
  const Bytes whole = peak_of(problem);
  CHECK(whole == all);
  for (const Bytes budget :
       {floor, Bytes(8 * parameters), Bytes(12 * parameters), all - 1_MiB, all - Bytes(1)}) {
    const Solution solution = solved(problem, budget);
    CHECK(solution.evaluation.d2h_bytes == Bytes(2 * parameters));
    CHECK(solution.evaluation.h2d_bytes == Bytes(2 * parameters));
    CHECK(solution.placement.device.back() == Device::cpu);
    // A single byte too few is a price of 50 ms a byte: beyond what the bound resolves.
    if (budget < all - Bytes(1)) CHECK(solution.proved_optimal);
  }
  const Solution above = solved(problem, whole);
  CHECK(above.evaluation.d2h_bytes + above.evaluation.h2d_bytes == Bytes());
  CHECK(above.placement.device.back() == Device::gpu);
  CHECK(above.proved_optimal);
}

TEST_CASE("ZeRO-Offload: with the update pinned to the GPU the state goes up and down instead") {
  const ResidencyProblem problem = zero_offload(Pin::gpu);
  CHECK(memory_floor(problem).bytes == Bytes(16 * parameters));
  const Result<Solution> solution = solve(problem, {.budget = Bytes(15 * parameters)});
  REQUIRE_FALSE(solution.has_value());
  CHECK(render(solution.error()) ==
        "error: a budget of 1.4 GiB is below the 1.5 GiB that 'update' alone needs on the GPU\n"
        "note: 'master' takes 381.5 MiB\n"
        "note: 'momentum' takes 381.5 MiB\n"
        "note: 'variance' takes 381.5 MiB\n"
        "note: 'parameters' takes 190.7 MiB\n"
        "note: 'gradients' takes 190.7 MiB\n");
}

// tf.device('/cpu:0') for the variables: what TensorFlow's users do by hand. With no optimizer
// state and variables read once, the cut must find the same: updates on the CPU, variables up,
// gradients down.
TEST_CASE("TensorFlow's placement: variables and their updates on the CPU") {
  StepSketch step(round_rates());
  constexpr Bytes variable{400'000'000};
  constexpr int layers = 4;
  std::vector<std::int32_t> weights;
  std::vector<std::int32_t> gradients;
  std::vector<std::int32_t> values{step.storage("input", Bytes(1000), Life::input)};
  for (int i = 0; i < layers; ++i) {
    const std::string name = "layer" + std::to_string(i);
    weights.push_back(step.storage(name + ".weight", variable, Life::state));
    gradients.push_back(step.storage(name + ".grad", variable));
    values.push_back(step.storage(name, Bytes(1000)));
    step.operation(name + ".forward", Pin::gpu, {values[values.size() - 2], weights.back()},
                   {values.back()}, 1e11);
  }
  for (int i = layers; i-- > 0;) {
    const auto at = static_cast<std::size_t>(i);
    const std::string name = "layer" + std::to_string(i);
    step.operation(name + ".backward", Pin::gpu, {values[at]}, {gradients[at]}, 1e11);
    step.operation(name + ".update", Pin::free, {weights[at], gradients[at]}, {weights[at]}, 1e8);
  }
  const ResidencyProblem problem = step.problem();
  const Bytes budget = Bytes(variable.count() + 5 * 1000);
  const Solution solution = solved(problem, budget);
  CHECK(solution.evaluation.h2d_bytes == variable * layers + Bytes(1000));
  CHECK(solution.evaluation.d2h_bytes == variable * layers);
  for (std::size_t v = 0; v < problem.operations.size(); ++v) {
    const bool update = problem.operations[v].name.ends_with("update");
    CHECK(solution.placement.device[v] == (update ? Device::cpu : Device::gpu));
  }
}

TEST_CASE("a star is a knapsack") {
  // Weights made at the start and read at the end; in the middle something needs room.
  const std::vector<std::int64_t> size{31, 29, 23, 19, 17, 13, 11, 7, 5, 3};
  const std::vector<double> value{40, 27, 35, 18, 19, 11, 15, 6, 8, 2};
  constexpr std::int64_t room = 70;
  ResidencyProblem problem;
  const auto operation = [&](const char* name) {
    problem.operations.push_back({.name = name, .engines = {{0, Bytes()}}, .pin = Pin::gpu});
  };
  for (std::size_t i = 0; i < size.size(); ++i) operation("make");
  operation("middle");
  problem.operations.back().engines.front().workspace = Bytes(1000);
  for (std::size_t i = 0; i < size.size(); ++i) operation("use");
  for (std::size_t i = 0; i < size.size(); ++i) {
    const auto last = static_cast<std::int32_t>(2 * size.size() - i);
    problem.items.push_back(
        {.name = "item",
         .bytes = Bytes(size[i]),
         .touches = {{static_cast<std::int32_t>(i), false, true}, {last, true, false}},
         .h2d_seconds = value[i],
         .d2h_seconds = 0});
  }
  double all = 0;
  double best = 0;
  for (unsigned mask = 0; mask < (1U << size.size()); ++mask) {
    std::int64_t bytes = 0;
    double kept = 0;
    for (std::size_t i = 0; i < size.size(); ++i) {
      if (((mask >> i) & 1U) == 0) continue;
      bytes += size[i];
      kept += value[i];
    }
    if (bytes <= room) best = std::max(best, kept);
    all = std::max(all, kept);
  }
  const Solution solution = solved(problem, Bytes(1000 + room));
  CHECK(solution.evaluation.cost_seconds == doctest::Approx(all - best));
  CHECK(solution.proved_optimal);
}

TEST_CASE("a chain with one large activation in the middle swaps that one") {
  StepSketch step(round_rates());
  constexpr int layers = 9;
  std::vector<std::int32_t> value{step.storage("input", Bytes(1'000'000), Life::input)};
  for (int i = 0; i < layers; ++i) {
    const std::int64_t bytes = i == 2 ? 900'000'000 : 100'000'000;
    value.push_back(step.storage("a" + std::to_string(i), Bytes(bytes)));
    step.operation("f" + std::to_string(i), Pin::gpu, {value[value.size() - 2]}, {value.back()},
                   1e11);
  }
  auto gradient = step.storage("da", Bytes(1'000'000));
  step.operation("loss", Pin::gpu, {value.back()}, {gradient}, 1e9);
  for (int i = layers; i-- > 0;) {
    const auto next = step.storage("d" + std::to_string(i), Bytes(1'000'000));
    step.operation("b" + std::to_string(i), Pin::gpu,
                   {value[static_cast<std::size_t>(i)], gradient}, {next}, 2e11);
    gradient = next;
  }
  const ResidencyProblem problem = step.problem();
  const Bytes peak = peak_of(problem);
  const Solution solution = solved(problem, peak - Bytes(400'000'000));
  CHECK(solution.evaluation.cost_seconds - solution.cost_lower_bound_seconds < 2e-4);
  for (std::size_t i = 0; i < problem.items.size(); ++i) {
    const std::vector<bool>& resident = solution.placement.resident[i];
    const bool dropped = std::find(resident.begin(), resident.end(), false) != resident.end();
    // 400 MB are missing: four of the small ones move less than the large one.
    if (problem.items[i].name == "a2") CHECK_FALSE(dropped);
  }
  const Solution tight = solved(problem, peak - Bytes(650'000'000));  // no room for a2 and two more
  for (std::size_t i = 0; i < problem.items.size(); ++i) {
    const std::vector<bool>& resident = tight.placement.resident[i];
    const bool dropped = std::find(resident.begin(), resident.end(), false) != resident.end();
    if (problem.items[i].name == "a2") CHECK(dropped);
  }
}

TEST_CASE("FlexGen's weight streaming: what has no place is fetched once a step, and never back") {
  // Generation, a token at a time: every layer reads its weights once a step, round and round.
  constexpr int layers = 12;
  constexpr Bytes weight = 64_MiB, hidden = 1_MiB;
  ResidencyProblem problem;
  for (int i = 0; i < layers; ++i) {
    problem.operations.push_back({.name = "layer" + std::to_string(i),
                                  .engines = {{1e-3, 0_B}},
                                  .cpu_seconds = 1,
                                  .pin = Pin::gpu});
    problem.items.push_back({.name = "weight" + std::to_string(i),
                             .bytes = weight,
                             .touches = {{i, true, false}},
                             .wraps = true,
                             .host_at_start = true,
                             .h2d_seconds = 6e-3,
                             .d2h_seconds = 6e-3});
  }
  for (int i = 0; i + 1 < layers; ++i) {
    problem.items.push_back({.name = "hidden" + std::to_string(i),
                             .bytes = hidden,
                             .touches = {{i, false, true}, {i + 1, true, false}},
                             .h2d_seconds = 1e-4,
                             .d2h_seconds = 1e-4});
  }
  for (const int places : {1, 2, 5, layers}) {
    CAPTURE(places);
    const Solution solution =
        solved(problem, Bytes(places * weight.count()) + Bytes(2 * hidden.count()));
    // One place is for what streams through; with as many places as layers nothing does.
    const int streamed = places == layers ? 0 : layers - (places - 1);
    CHECK(solution.evaluation.h2d_bytes == Bytes(streamed * weight.count()));
    CHECK(solution.evaluation.d2h_bytes == 0_B);
    CHECK(solution.proved_optimal);
  }
  // Where the CPU takes less than the link does, what has no place is computed there instead.
  for (Operation& operation : problem.operations) {
    operation.pin = Pin::free;
    operation.cpu_seconds = 3e-3;
  }
  const Solution split = solved(problem, Bytes(6 * weight.count()) + Bytes(2 * hidden.count()));
  CHECK(split.evaluation.h2d_bytes < weight);
  CHECK(std::ranges::count(split.placement.device, Device::cpu) == layers - 6);
}

TEST_CASE("a larger budget never costs more than a smaller one's plan by more than the gap") {
  const ResidencyProblem problem = transformer_step(3, 256, 512, 1000, round_rates());
  const Bytes peak = peak_of(problem);
  const Bytes floor = memory_floor(problem).bytes;
  double cheapest_so_far = 1e300;
  for (int part = 0; part <= 20; ++part) {
    const Bytes budget = floor + Bytes((peak - floor).count() / 20 * part);
    const Result<Solution> solution = solve(problem, {.budget = budget});
    REQUIRE(solution.has_value());
    const double cost = solution->evaluation.cost_seconds;
    const double gap = cost - solution->cost_lower_bound_seconds;
    CHECK(cost <= cheapest_so_far + gap + 1e-12);
    CHECK(solution->cost_lower_bound_seconds <= cheapest_so_far);
    cheapest_so_far = std::min(cheapest_so_far, cost);
  }
}

}  // namespace stowage
