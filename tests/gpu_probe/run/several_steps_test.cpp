// Several steps, one after the other in the same arenas: each goes on from where the plan says that
// the one before has left its results, and trains as the resident steps do, bit by bit.
#include <doctest/doctest.h>

#include "estimator/model/load_model.hpp"
#include "estimator/step/lower.hpp"
#include "gpu_probe/host/host_backend.hpp"
#include "gpu_probe/run/executor.hpp"
#include "gpu_probe/run/node_call.hpp"
#include "gpu_probe/run/resident_step.hpp"
#include "gpu_probe/run/validate_run.hpp"
#include "tests/gpu_probe/run/random_plan.hpp"
#include "tests/gpu_probe/run/small_models.hpp"
#include "tests/support/described_model.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage::test {
namespace {

struct Subject {
  const char* model;
  std::int64_t batch;
  LoweringSettings settings;
};

/// Steps with momentum, moments, running statistics, dropout, tied weights, micro-batches.
std::vector<Subject> subjects() {
  return {{mlp, 4, adamw(2)},
          {small_cnn, 3, sgd_momentum()},
          {small_resnet, 2, adamw()},
          {small_gpt2, 2, adamw()},
          {small_gpt2, 1, sgd_momentum(2)}};
}

std::vector<double> losses_of_training(const StepGraph& graph, std::int64_t batch,
                                       std::int64_t steps) {
  const auto backend = open_host_backend();
  REQUIRE(backend.has_value());
  const auto report = run_plan(random_plan(graph, batch, 17), **backend, {.steps = steps});
  REQUIRE(report.has_value());
  for (const Check& check : report->checks) {
    INFO(check.name, ": ", check.detail);
    CHECK(check.passed);
  }
  return report->measured.losses;
}

}  // namespace

TEST_CASE("planned steps leave the bits of as many resident steps") {
  constexpr std::int64_t steps = 4;
  for (const Subject& subject : subjects()) {
    const StepGraph graph = step_of(subject.model, subject.settings);
    const auto expected = run_resident_steps(graph, subject.batch, steps);
    REQUIRE(expected.has_value());
    REQUIRE(expected->size() == steps);
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      CAPTURE(graph.model);
      CAPTURE(seed);
      const Plan plan = random_plan(graph, subject.batch, seed);
      for (const bool clean : {false, true}) {
        const auto backend = open_host_backend();
        REQUIRE(backend.has_value());
        const auto done = execute(
            plan, **backend, {.timing = {seed % 2 == 0, true}, .clean = clean, .steps = steps});
        REQUIRE(done.has_value());
        CHECK(done->violations.empty());
        REQUIRE(done->completed);
        CHECK(done->times.size() == steps);
        CHECK(done->h2d.bytes.count() == steps * plan.totals.h2d.count());
        CHECK(done->d2h.bytes.count() == steps * plan.totals.d2h.count());
        for (const auto& [storage, value] : done->results) {
          CHECK((value == expected->back().at(storage)));
        }
        if (clean) continue;
        CHECK(done->results.size() == expected->back().size());
        REQUIRE(done->earlier.size() == steps - 1);
        for (std::size_t n = 0; n < done->earlier.size(); ++n) {
          CHECK((done->earlier[n] == losses_of(graph, (*expected)[n])));
        }
      }
    }
  }
}

TEST_CASE("what does not stay over a step's end is not there for the next one") {
  // A storage of the optimizer's state leaves before the step ends: NaN in the second step.
  const StepGraph graph = step_of(mlp, adamw());
  const auto momentum_of = [&](const Plan& plan) {
    for (const Residence& residence : plan.in(gpu_memory)) {
      const Storage& storage = graph.storage(residence.storage);
      if (storage.storage_class == StorageClass::optimizer_state) return residence.storage;
    }
    return StorageId();
  };
  Plan plan = resident_plan(graph, 4);
  const StorageId momentum = momentum_of(plan);
  REQUIRE(momentum.valid());
  for (Residence& residence : plan.in(gpu_memory)) {
    if (residence.storage == momentum) residence.steps.end -= 1;
  }
  const auto backend = open_host_backend();
  REQUIRE(backend.has_value());
  const auto done = execute(plan, **backend, {.steps = 2, .stop_at_violation = false});
  REQUIRE(done.has_value());
  CHECK_FALSE(done->violations.empty());
  const auto expected = run_resident_steps(graph, 4, 2);
  REQUIRE(expected.has_value());
  CHECK(difference(graph, results_of(graph), ResultKind::parameter, done->results, expected->back())
            .unequal > 0);
}

TEST_CASE("optimizers are told the step, and random kernels draw anew in each") {
  KernelNode node;
  node.phase = Phase::update;
  CHECK_FALSE(attributes_in_step(node, 1).has("step"));
  CHECK(attributes_in_step(node, 3).integer("step") == 3);
  node.phase = Phase::forward;
  node.attributes.set("seed", std::int64_t{5});
  CHECK(attributes_in_step(node, 1).integer("seed") == 5);
  CHECK(attributes_in_step(node, 2).integer("seed") != 5);
  CHECK(attributes_in_step(node, 2).integer("seed") != attributes_in_step(node, 3).integer("seed"));
  CHECK_FALSE(attributes_in_step(node, 3).has("step"));
}

TEST_CASE("training lowers the loss: an MNIST-like CNN, a ResNet, a transformer of two layers") {
  constexpr std::int64_t steps = 12;
  struct Trained {
    StepGraph graph;
    std::int64_t batch;
  };
  const auto source = find_model(testing::source_path("/tests/models/small-resnet.yaml"), "");
  REQUIRE(source.has_value());
  const auto resnet = load_model(source->source, source->options);
  REQUIRE(resnet.has_value());
  const ModelGraph cnn = testing::shipped("mnist-cnn");
  for (const Trained& trained :
       {Trained{lower(cnn, adamw()).value(), 8}, Trained{lower(*resnet, adamw()).value(), 4},
        Trained{step_of(small_gpt2, adamw()), 2}}) {
    CAPTURE(trained.graph.model);
    const std::vector<double> losses = losses_of_training(trained.graph, trained.batch, steps);
    REQUIRE(losses.size() == steps);
    CHECK(losses.back() < 0.9 * losses.front());
  }
}

}  // namespace stowage::test
