// The host kernels take what the catalogue's rows lower to: a small step of each operator, run with
// everything resident.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "gpu_probe/host/host_backend.hpp"
#include "gpu_probe/run/resident_step.hpp"
#include "gpu_probe/run/validate_run.hpp"
#include "tests/gpu_probe/run/gradient_check.hpp"
#include "tests/gpu_probe/run/operator_models.hpp"
#include "tests/gpu_probe/run/random_plan.hpp"
#include "tests/gpu_probe/run/small_models.hpp"

namespace stowage::test {
namespace {

/// Checks that tensors are whole storages and row-major, as kernel_list.hpp promises.
void check_plain(const StepGraph& graph) {
  for (const KernelNode& node : graph.nodes) {
    for (const auto* views : {&node.reads, &node.writes}) {
      for (const TensorView& view : *views) {
        INFO(node.name);
        CHECK((view.offset == Affine(0) && view.strides == contiguous_strides(view.shape)));
      }
    }
  }
}

}  // namespace

TEST_CASE("a step of every operator runs, and its numbers are finite") {
  for (const OperatorModel& model : operator_models()) {
    INFO(std::string(model.name));
    const std::string text = operator_description(model);
    const StepGraph graph = step_of(text.c_str(), sgd_momentum());
    check_plain(graph);
    const auto results = run_resident_step(graph, 8);
    const std::string refusal = results ? "" : results.error().front().message;
    CHECK(refusal == "");
    if (!results) continue;
    std::size_t gradients = 0;
    for (const ResultPlace& place : results_of(graph)) {
      const auto& bytes = results->at(place.storage);
      bool finite = true, any = false;
      for (std::size_t at = 0; at + sizeof(float) <= bytes.size(); at += sizeof(float)) {
        float value = 0;
        std::memcpy(&value, bytes.data() + at, sizeof value);
        finite = finite && std::isfinite(value);
        any = any || value != 0;
      }
      INFO(graph.storage(place.storage).name);
      CHECK(finite);
      if (place.kind != ResultKind::gradient) continue;
      CHECK(any);
      ++gradients;
    }
    CHECK(gradients >= 4);  // those of the stem and the head
  }
}

TEST_CASE("plans drawn from the definition leave the bits of every operator's step") {
  auto backend = open_host_backend();
  REQUIRE(backend.has_value());
  for (const OperatorModel& model : operator_models()) {
    INFO(std::string(model.name));
    const std::string text = operator_description(model);
    const StepGraph graph = step_of(text.c_str(), adamw());
    const auto report = run_plan(random_plan(graph, 3, 5), **backend);
    const std::string refusal = report ? "" : report.error().front().message;
    CHECK(refusal == "");
    if (!report) continue;
    for (const Check& check : report->checks) {
      INFO(check.name, ": ", check.detail);
      CHECK(check.passed);
    }
  }
}

TEST_CASE("every operator's step has the same bits in place and with room for every result") {
  int fewer = 0;
  for (const OperatorModel& model : operator_models()) {
    INFO(std::string(model.name));
    const std::string text = operator_description(model);
    LoweringSettings settings = sgd_momentum();
    const StepGraph in_place = step_of(text.c_str(), settings);
    settings.in_place = false;
    const StepGraph apart = step_of(text.c_str(), settings);
    if (in_place.storages.size() < apart.storages.size()) ++fewer;
    const auto results = run_resident_step(in_place, 5), expected = run_resident_step(apart, 5);
    REQUIRE(results.has_value());
    REQUIRE(expected.has_value());
    const auto places = results_of(in_place), places_apart = results_of(apart);
    REQUIRE(places.size() == places_apart.size());
    for (std::size_t i = 0; i < places.size(); ++i) {
      INFO(in_place.storage(places[i].storage).name);
      CHECK(results->at(places[i].storage) == expected->at(places_apart[i].storage));
    }
  }
  CHECK(fewer > 40);
}

TEST_CASE("every operator's gradients are the slopes of its loss") {
  double worst = 0;
  for (const OperatorModel& model : operator_models()) {
    const std::string text = operator_description(model);
    const StepGraph graph = step_of(text.c_str(), sgd_momentum());
    const auto checks = check_gradients(graph, 4, 3e-3);
    CHECK(checks.size() >= 4);
    for (const GradientCheck& check : checks) {
      INFO(std::string(model.name), ", ", check.parameter);
      CHECK(check.along_error <= 0.01);
      CHECK(check.random_error <= 0.01);
      worst = std::max({worst, check.along_error, check.random_error});
    }
  }
  MESSAGE("largest relative difference from the loss's slope: ", worst);
}

}  // namespace stowage::test
