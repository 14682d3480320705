// Runs plans on the host backend and compares them with the step with everything resident: every
// bit is equal.
#include "gpu_probe/run/validate_run.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "gpu_probe/host/host_backend.hpp"
#include "gpu_probe/run/resident_step.hpp"
#include "tests/gpu_probe/run/random_plan.hpp"
#include "tests/gpu_probe/run/small_models.hpp"

namespace stowage::test {
namespace {

RunReport run_on_host(const Plan& plan) {
  auto backend = open_host_backend();
  REQUIRE(backend.has_value());
  auto report = run_plan(plan, **backend);
  const std::string refusal = report ? "" : render(report.error());
  REQUIRE(refusal == "");
  return *report;
}

std::string failures(const RunReport& report) {
  std::string text;
  for (const Check& check : report.checks) {
    if (!check.passed) text += check.name + ": " + check.detail + "\n";
  }
  return text;
}

struct ValidatedStep {
  const char* model;
  std::int64_t batch;
  LoweringSettings settings;
};

std::vector<ValidatedStep> validated_steps() {
  LoweringSettings inference = sgd_momentum();
  inference.mode = Mode::inference;
  return {{mlp, 4, sgd_momentum()},          {mlp, 2, adamw(2)},
          {small_cnn, 3, sgd_momentum()},    {small_cnn, 2, adamw(3)},
          {small_resnet, 2, sgd_momentum()}, {small_resnet, 3, adamw()},
          {small_gpt2, 2, adamw()},          {small_gpt2, 1, sgd_momentum(2)},
          {small_unet, 1, adamw()},          {small_resnet, 2, inference},
          {small_gpt2, 1, inference}};
}

}  // namespace

TEST_CASE("a plan that keeps everything on the GPU leaves the resident step's bits") {
  for (const ValidatedStep& subject : validated_steps()) {
    const StepGraph graph = step_of(subject.model, subject.settings);
    const RunReport report = run_on_host(resident_plan(graph, subject.batch));
    CHECK(failures(report) == "");
    CHECK(report.passed());
    CHECK(report.backend == "host");
    CHECK(report.measured.d2h.copies == 0);
    CHECK(report.measured.lanes.kernels() > 0);
    CHECK(report.measured.lanes.step >= report.measured.lanes.kernels());
  }
}

TEST_CASE("plans drawn from the definition leave the resident step's bits") {
  std::int64_t uploads = 0, downloads = 0;
  for (const ValidatedStep& subject : validated_steps()) {
    const StepGraph graph = step_of(subject.model, subject.settings);
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      const Plan plan = random_plan(graph, subject.batch, seed);
      const RunReport report = run_on_host(plan);
      INFO(graph.model, ", seed ", seed);
      CHECK(failures(report) == "");
      uploads += report.measured.h2d.copies;
      downloads += report.measured.d2h.copies;
    }
  }
  CHECK(uploads > 1000);
  CHECK(downloads > 500);
}

TEST_CASE("gradients are finite, not all zero, and as many as there are trained parameters") {
  for (const ValidatedStep& subject : validated_steps()) {
    if (subject.settings.mode == Mode::inference) continue;
    const StepGraph graph = step_of(subject.model, subject.settings);
    const auto results = run_resident_step(graph, subject.batch);
    REQUIRE(results.has_value());
    std::size_t gradients = 0;
    for (const ResultPlace& place : results_of(graph)) {
      if (place.kind != ResultKind::gradient) continue;
      ++gradients;
      const auto& value = results->at(place.storage);
      CHECK(std::any_of(value.begin(), value.end(), [](std::byte b) { return b != std::byte{0}; }));
    }
    const auto trained =
        std::count_if(graph.gradients.begin(), graph.gradients.end(),
                      [](const TensorView& gradient) { return gradient.storage.valid(); });
    CHECK(gradients == static_cast<std::size_t>(trained));
    CHECK(difference(graph, results_of(graph), ResultKind::gradient, *results, *results).finite);
  }
}

}  // namespace stowage::test
