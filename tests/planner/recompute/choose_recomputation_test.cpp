// Choices fit the budget, and are close to the best of all choices where those can be tried.
#include "planner/recompute/choose_recomputation.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>

#include "estimator/rewrite/recompute.hpp"
#include "planner/recompute/checkpoint_segments.hpp"
#include "planner/recompute/recompute_search.hpp"
#include "planner/recompute/segments.hpp"
#include "tests/planner/recompute/recomputed_steps.hpp"

namespace stowage {

using namespace testing;

namespace {

constexpr std::int64_t few_trials = 4'000;

Bytes share_of(Bytes bytes, std::int64_t percent) { return Bytes(bytes.count() / 100 * percent); }

/// The extra seconds of the best choice without renewals within the limit; none: no choice is
/// within it.
std::optional<double> best_of_all(RecomputeModel& model, Bytes limit) {
  const std::size_t groups = model.groups().size();
  REQUIRE(groups <= 14);
  std::optional<double> best;
  for (std::size_t bits = 0; bits < (std::size_t{1} << groups); ++bits) {
    RecomputeChoice choice(model.decisions(), false);
    for (std::size_t g = 0; g < groups; ++g) choice[g] = (bits >> g & 1) != 0;
    const RecomputeOutcome outcome = model.outcome(choice, limit);
    if (!outcome.valid || outcome.peak > limit) continue;
    if (!best || outcome.extra_seconds < *best) best = outcome.extra_seconds;
  }
  return best;
}

/// A chain of random layers, now and then with a sum over the layer before.
std::string random_network(std::mt19937& random) {
  std::string text =
      "model: random\n"
      "inputs: {x: {shape: [batch, 4, 12, 12]}, t: {shape: [batch], dtype: int64}}\n"
      "layers:\n"
      "  - conv2d: {name: l0, from: x, channels: 4, kernel: 3, padding: 1}\n";
  for (int i = 1; i <= 7; ++i) {
    const std::string name = fmt::format("l{}", i);
    switch (random() % 5) {
      case 0:
        text += fmt::format("  - conv2d: {{name: {}, channels: 4, kernel: {}, padding: same}}\n",
                            name, 1 + 2 * (random() % 3));
        break;
      case 1:
        text += fmt::format("  - gelu: {{name: {}}}\n", name);
        break;
      case 2:
        text += fmt::format("  - dropout: {{name: {}}}\n", name);
        break;
      case 3:
        text += fmt::format("  - batch_norm: {{name: {}}}\n", name);
        break;
      default:
        text += fmt::format("  - add: {{name: {}, from: [l{}, l{}]}}\n", name, i - 1,
                            random() % static_cast<unsigned>(i));
    }
  }
  return text +
         "  - adaptive_avg_pool2d: {name: mean, size: 1}\n"
         "  - flatten\n"
         "  - linear: {name: head, features: 3}\n"
         "loss: {cross_entropy: {from: [head, t]}}\n";
}

}  // namespace

TEST_CASE("on small networks the choice is within 2 percent of the best of all") {
  std::mt19937 random(5);
  int feasible = 0;
  for (int network = 0; network < 14; ++network) {
    const std::string text = random_network(random);
    CAPTURE(text);
    const SizedStep step = sized_step_of(text);
    RecomputeModel model(step, usual_rates());
    const Bytes whole = plain_figures(step).peak;
    for (const std::int64_t percent : {90, 80, 70, 60}) {
      CAPTURE(percent);
      const Bytes limit = share_of(whole, percent);
      const auto best = best_of_all(model, limit);
      const FoundChoice found =
          search_choice(model, step, {.limit = limit, .most_trials = few_trials});
      if (!best) continue;
      REQUIRE(found.outcome.peak <= limit);
      ++feasible;
      CHECK(found.outcome.extra_seconds <= 1.02 * *best + 1e-12);
    }
  }
  CHECK(feasible > 20);
}

TEST_CASE("no segments do better, at any budget that they keep") {
  for (const char* name : {"resnet18", "densenet121", "unet"}) {
    CAPTURE(name);
    const SizedStep step = sized(lowered(shipped(name), {.in_place = true}), 4);
    RecomputeModel model(step, usual_rates());
    int compared = 0;
    for (std::size_t segments = 2; segments <= 2 * default_segment_count(model); segments += 3) {
      const RecomputeOutcome of_segments =
          model.outcome(segment_choice(model, step, segments), Bytes());
      const FoundChoice found =
          search_choice(model, step, {.limit = of_segments.peak, .most_trials = 400});
      CHECK(found.outcome.peak <= of_segments.peak);
      CHECK(found.outcome.extra_seconds <= of_segments.extra_seconds);
      ++compared;
    }
    CHECK(compared >= 3);
  }
}

TEST_CASE("segments are made again and their boundaries are kept") {
  const SizedStep step = sized_step_of(branching_network);
  RecomputeModel model(step, usual_rates());
  CHECK(segment_choice(model, step, 1) == RecomputeChoice(model.decisions(), false));
  const RecomputeChoice choice = segment_choice(model, step, 3);
  const auto chosen = std::count(choice.begin(), choice.end(), true);
  CHECK(chosen > 0);
  CHECK(chosen < std::ssize(model.groups()));
  CHECK_FALSE(choice[model.groups().size() - 1]);
}

TEST_CASE("segments of sqrt(n) layers are regions that checkpoints take, the last layers in none") {
  for (const char* name : {"resnet18", "gpt2", "mobilenet_v2", "unet"}) {
    CAPTURE(name);
    const auto shared = lowered(shipped(name), {.in_place = true});
    const StepGraph& graph = *shared;
    const auto regions = sqrt_segments(graph);
    std::set<OperatorId> layers, inside;
    for (const KernelNode& node : graph.nodes) {
      if (node.phase == Phase::forward && node.op.valid()) layers.insert(node.op);
    }
    for (const CheckpointRegion& region : regions) {
      inside.insert(region.operators.begin(), region.operators.end());
    }
    const double root = std::sqrt(static_cast<double>(layers.size()));
    CHECK(regions.size() > 1);
    CHECK(static_cast<double>(regions.size()) <= std::ceil(root));
    CHECK(inside.size() < layers.size());
    const auto step = with_checkpoints(graph, regions);
    REQUIRE_MESSAGE(step.has_value(), render(step.error()));
    CHECK(plain_figures(sized(std::make_shared<const StepGraph>(*step), 4)).peak <
          plain_figures(sized(shared, 4)).peak);
  }
}

TEST_CASE("points keep to their limits, and recompute less from one to the next") {
  const SizedStep step = sized(lowered(shipped("resnet18"), {.in_place = true}), 32);
  const Bytes whole = plain_figures(step).peak;
  const RecomputeOptions options{.budget = share_of(whole, 70), .effort = 0.1};
  const auto points = choose_recomputation(step, usual_rates(), options);
  REQUIRE(points.size() >= 2);
  CHECK(points.front().limit == options.budget.bytes);
  double seconds = points.front().extra_seconds + 1;
  for (const RecomputePoint& point : points) {
    CHECK(point.fits);
    CHECK(point.live_peak <= point.limit);
    CHECK(point.extra_seconds < seconds);
    seconds = point.extra_seconds;
    const auto rewritten = with_recomputation(*step.graph, point.values);
    REQUIRE(rewritten);
    CHECK(rewritten->settings.recomputed == point.values);
    const PlainFigures figures =
        plain_figures(sized(std::make_shared<const StepGraph>(*rewritten), step.batch));
    CHECK(figures.peak == point.live_peak);
  }
  const auto again = choose_recomputation(step, usual_rates(), options);
  REQUIRE(again.size() == points.size());
  for (std::size_t i = 0; i < again.size(); ++i) CHECK(again[i].values == points[i].values);
}

TEST_CASE("the micro-batches of a step are chosen for one by one") {
  const SizedStep step = sized_step_of(normalised_network, 2);
  const Bytes whole = plain_figures(step).peak;
  const auto points = choose_recomputation(
      step, usual_rates(), {.budget = share_of(whole, 75), .swapped = {0}, .effort = 0.1});
  REQUIRE(points.size() == 1);
  CHECK(points.front().fits);
  CHECK(with_recomputation(*step.graph, points.front().values));
}

TEST_CASE("a search that is stopped at once gives what it has") {
  const SizedStep step = sized_step_of(normalised_network);
  const Bytes whole = plain_figures(step).peak;
  WorkBudget none(Work{0});
  const auto points =
      choose_recomputation(step, usual_rates(), {.budget = share_of(whole, 75), .work = &none});
  CHECK(points.size() <= 1);
  for (const RecomputePoint& point : points) CHECK(with_recomputation(*step.graph, point.values));
}

TEST_CASE("there is nothing to choose where all fits, nothing trains or others decide") {
  const SizedStep step = sized_step_of(normalised_network);
  const RecomputeOptions small{.budget = Bytes(1), .swapped = {0}, .effort = 0.05};
  CHECK(choose_recomputation(step, usual_rates(), {.budget = plain_figures(step).peak}).empty());
  const ModelGraph model = described(normalised_network);
  for (const LoweringSettings& settings :
       {LoweringSettings{.mode = Mode::inference}, LoweringSettings{.kernels = KernelSet::pytorch},
        LoweringSettings{.recomputed = {{"a"}}}}) {
    CHECK(choose_recomputation(sized(lowered(model, settings), 16), usual_rates(), small).empty());
  }
  const auto points = choose_recomputation(step, usual_rates(), small);
  for (const RecomputePoint& point : points) CHECK_FALSE(point.fits);
}

}  // namespace stowage
