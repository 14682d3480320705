// Recomputation in steps with the user's pins.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "estimator/document/make_document.hpp"
#include "estimator/rewrite/recompute.hpp"
#include "planner/problem/step_names.hpp"
#include "planner/recompute/choose_recomputation.hpp"
#include "planner/recompute/pinned_lives.hpp"
#include "planner/recompute/recompute_model.hpp"
#include "tests/planner/recompute/recomputed_steps.hpp"

namespace stowage {

using namespace testing;

namespace {

PinRequest pins_of(const std::vector<std::string>& texts) {
  PinRequest request;
  for (const std::string& text : texts) {
    const std::size_t equals = text.rfind('=');
    request.pins.push_back(
        parse_device_pin(text.substr(0, equals), text.substr(equals + 1)).value());
  }
  return request;
}

struct PinnedStep {
  StepDocument document;
  SizedStep step;
  PinRequest request;
  StepPins pins;
};

PinnedStep pinned_step(const char* text, const std::vector<std::string>& pins) {
  PinnedStep of;
  of.document = make_document(described(text), {}, Runtime::stowage, {}, step_alone).value();
  of.step = sized(of.document.graph, 16);
  of.request = pins_of(pins);
  of.pins = apply_pins(*of.document.graph, of.document.layers, of.request).value();
  return of;
}

/// The figures of a step with these pins and all else on the GPU, by the definition of the problem.
Evaluation figures_of(const SizedStep& step, const StepPins& pins) {
  const ResidencyProblem problem =
      make_problem(step, usual_rates(), {.all_on_gpu = true, .pins = &pins});
  return evaluate(problem, all_gpu_placement(problem, Bytes()));
}

std::string groups_of(const PinnedStep& of) {
  RecomputeModel model(of.step, usual_rates(), of.pins);
  std::string names;
  for (const RerunGroup& group : model.groups()) {
    names += (names.empty() ? "" : " ") + of.step.graph->storage(group.makes.front()).name;
  }
  return names;
}

}  // namespace

TEST_CASE("what is pinned is not made again where nothing is won") {
  CHECK(groups_of(pinned_step(branching_network, {})) == "a bent b drop sum late pool");
  // A kernel on the CPU.
  CHECK(groups_of(pinned_step(branching_network, {"b=cpu"})) == "a bent drop sum late pool");
  CHECK(groups_of(pinned_step(branching_network, {"op:gelu=cpu"})) == "a b drop sum pool");
  // A result that stays on the GPU, or lives on the CPU.
  CHECK(groups_of(pinned_step(branching_network, {"class:activation=gpu"})) == "");
  CHECK(groups_of(pinned_step(branching_network, {"class:activation=cpu"})) == "drop");  // its mask
  // Parameters say nothing of results.
  CHECK(groups_of(pinned_step(branching_network, {"class:parameter=cpu"})) ==
        "a bent b drop sum late pool");
  CHECK(groups_of(pinned_step(branching_network, {"op:conv2d=gpu"})) ==
        "a bent b drop sum late pool");
}

TEST_CASE("with pins, too, a choice's figures are those of the step that recomputes it") {
  std::mt19937 random(11);
  for (const char* text : {branching_network, normalised_network}) {
    for (const std::vector<std::string>& pins : std::vector<std::vector<std::string>>{
             {"class:parameter=cpu"}, {"op:conv2d=gpu"}, {"class:gradient=cpu"}}) {
      const PinnedStep of = pinned_step(text, pins);
      CAPTURE(pins.front());
      CAPTURE(of.step.graph->model);
      RecomputeModel model(of.step, usual_rates(), of.pins);
      for (int trial = 0; trial < 20; ++trial) {
        RecomputeChoice choice(model.decisions());
        for (std::size_t i = 0; i < choice.size(); ++i) {
          choice[i] = random() % (i < model.groups().size() ? 2 : 4) == 0;
        }
        const RecomputeOutcome outcome = model.outcome(choice, Bytes(1));
        REQUIRE(outcome.valid);
        auto rewritten = with_recomputation(*of.step.graph, model.values(choice));
        REQUIRE(rewritten);
        const auto graph = std::make_shared<const StepGraph>(*std::move(rewritten));
        const auto again = apply_pins(*graph, of.document.layers, of.request);
        REQUIRE(again);
        const Evaluation figures = figures_of(sized(graph, of.step.batch), *again);
        REQUIRE(figures.inconsistency == "");
        CHECK(outcome.peak == figures.peak);
      }
    }
  }
}

// The placement decides which copies beside kernels on the CPU are dropped; the model has what the
// kernels on the GPU need.
TEST_CASE("with kernels on the CPU a choice's peak is close to that of the step") {
  std::mt19937 random(12);
  for (const std::string pin : {"a=cpu", "b=cpu", "op:gelu=cpu", "head=cpu"}) {
    CAPTURE(pin);
    const PinnedStep of = pinned_step(branching_network, {pin});
    RecomputeModel model(of.step, usual_rates(), of.pins);
    for (int trial = 0; trial < 20; ++trial) {
      RecomputeChoice choice(model.decisions());
      for (std::size_t i = 0; i < model.groups().size(); ++i) choice[i] = random() % 2 == 0;
      const RecomputeOutcome outcome = model.outcome(choice, Bytes(1));
      const auto rewritten = with_recomputation(*of.step.graph, model.values(choice));
      REQUIRE(rewritten);
      const auto graph = std::make_shared<const StepGraph>(*rewritten);
      const auto again = apply_pins(*graph, of.document.layers, of.request);
      REQUIRE(again);
      const Evaluation figures = figures_of(sized(graph, of.step.batch), *again);
      REQUIRE(figures.inconsistency == "");
      CHECK(static_cast<double>(outcome.peak.count()) ==
            doctest::Approx(static_cast<double>(figures.peak.count())).epsilon(0.1));
    }
  }
}

TEST_CASE("what is made again keeps to the pin of what was made first") {
  CHECK(without_recompute_suffix("late.forward.recomputed~2") == "late.forward");
  CHECK(without_recompute_suffix("late.forward.recomputed") == "late.forward");
  CHECK(without_recompute_suffix("late.forward~2") == "late.forward~2");
  const PinnedStep of = pinned_step(branching_network, {"late.forward=gpu"});
  const auto rewritten = with_recomputation(*of.step.graph, {{"late", {}}});
  REQUIRE(rewritten);
  const auto pins = apply_pins(*rewritten, of.document.layers, of.request);
  REQUIRE(pins);
  int pinned = 0;
  for (std::size_t i = 0; i < rewritten->nodes.size(); ++i) {
    if (pins->of(NodeId::of(i)) != Pin::gpu) continue;
    CHECK(rewritten->nodes[i].name.starts_with("late.forward"));
    ++pinned;
  }
  CHECK(pinned == 2);
}

TEST_CASE("a choice fits the budget with what pins keep off the GPU counted as such") {
  const PinnedStep of = pinned_step(normalised_network, {"class:parameter=cpu"});
  const Bytes whole = figures_of(of.step, of.pins).peak;
  const Bytes budget(whole.count() / 100 * 80);
  const auto points = choose_recomputation(
      of.step, usual_rates(), {.budget = budget, .pins = of.pins, .swapped = {0}, .effort = 0.1});
  REQUIRE(points.size() == 1);
  CHECK(points.front().fits);
  CHECK(points.front().live_peak <= budget);
  // All that it leaves on the GPU fits: nothing is chosen.
  CHECK(choose_recomputation(of.step, usual_rates(),
                             {.budget = whole, .pins = of.pins, .swapped = {0}, .effort = 0.1})
            .empty());
}

}  // namespace stowage
