// A small step of each loss: its gradients compared with the slopes of its value, and its results
// under random plans.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "gpu_probe/host/host_backend.hpp"
#include "gpu_probe/run/validate_run.hpp"
#include "tests/gpu_probe/run/gradient_check.hpp"
#include "tests/gpu_probe/run/operator_models.hpp"
#include "tests/gpu_probe/run/random_plan.hpp"
#include "tests/gpu_probe/run/small_models.hpp"

namespace stowage::test {

TEST_CASE("every loss's gradients are its slopes") {
  for (const LossModel& model : loss_models()) {
    const std::string text = loss_description(model);
    const StepGraph graph = step_of(text.c_str(), sgd_momentum());
    const auto checks = check_gradients(graph, 6, 3e-3);
    CHECK(checks.size() == 4);
    for (const GradientCheck& check : checks) {
      INFO(std::string(model.name), ", ", check.parameter);
      CHECK(check.along_error <= 0.01);
      CHECK(check.random_error <= 0.01);
    }
  }
}

TEST_CASE("plans drawn from the definition leave the bits of every loss's step") {
  auto backend = open_host_backend();
  REQUIRE(backend.has_value());
  for (const LossModel& model : loss_models()) {
    INFO(std::string(model.name));
    const std::string text = loss_description(model);
    const StepGraph graph = step_of(text.c_str(), adamw(2));
    const auto report = run_plan(random_plan(graph, 4, 5), **backend);
    const std::string refusal = report ? "" : report.error().front().message;
    CHECK(refusal == "");
    if (!report) continue;
    for (const Check& check : report->checks) {
      INFO(check.name, ": ", check.detail);
      CHECK(check.passed);
    }
  }
}

}  // namespace stowage::test
