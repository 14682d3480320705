// A small step of each loss: its value against the definition's slopes, and as drawn plans.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "gpu_probe/host/host_backend.hpp"
#include "gpu_probe/run/validate_run.hpp"
#include "tests/gpu_probe/run/gradient_check.hpp"
#include "tests/gpu_probe/run/random_plan.hpp"
#include "tests/gpu_probe/run/small_models.hpp"

namespace stowage::test {
namespace {

struct LossModel {
  const char* name;
  const char* target;  ///< the input's shape and type
  const char* layers;  ///< behind `head`, [batch, 4]
  const char* loss;
};

std::string loss_description(const LossModel& model) {
  return std::string("model: ") + model.name + "\ninputs:\n  x: {shape: [batch, 5]}\n  target: {" +
         model.target + "}\nlayers:\n  - linear: {name: stem, from: x, features: 6}\n  - tanh\n" +
         "  - linear: {name: head, features: 4}\n" + model.layers + "loss:\n" + model.loss;
}

const char* const numbers = "shape: [batch, 4]";
const char* const classes = "shape: [batch], dtype: int64";

const LossModel loss_models[] = {
    {"mse", numbers, "", "  mse: {from: [head, target]}\n"},
    {"l1", numbers, "", "  l1: {from: [head, target]}\n"},
    {"bce", numbers, "  - sigmoid: {name: p}\n", "  bce: {from: [p, target]}\n"},
    {"bce_with_logits", numbers, "", "  bce_with_logits: {from: [head, target]}\n"},
    {"kl_div", numbers, "  - log_softmax: {name: logp, axis: 1}\n",
     "  kl_div: {from: [logp, target], reduction: batchmean}\n"},
    {"kl_div over all", numbers, "  - log_softmax: {name: logp, axis: 1}\n",
     "  kl_div: {from: [logp, target], weight: 0.5}\n"},
    {"cross_entropy", classes, "", "  cross_entropy: {from: [head, target]}\n"},
    {"cross_entropy, smoothed", classes, "",
     "  cross_entropy: {from: [head, target], label_smoothing: 0.2}\n"},
    {"nll", classes, "  - log_softmax: {name: logp, axis: 1}\n", "  nll: {from: [logp, target]}\n"},
    {"several", numbers, "  - sigmoid: {name: p}\n",
     "  - l1: {from: [head, target], weight: 0.3}\n  - bce: {from: [p, target]}\n"},
};

}  // namespace

TEST_CASE("every loss's gradients are its slopes") {
  for (const LossModel& model : loss_models) {
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
  for (const LossModel& model : loss_models) {
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
