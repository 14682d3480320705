// Perturbed rounding moves sums by a few roundoffs, and numbers that are picked or moved not at
// all.
#include "gpu_probe/run/perturbed_rounding.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gpu_probe/run/resident_step.hpp"
#include "gpu_probe/run/validate_run.hpp"
#include "tests/gpu_probe/run/random_plan.hpp"
#include "tests/gpu_probe/run/small_models.hpp"
#include "tests/gpu_probe/run/wrapped_backend.hpp"

namespace stowage::test {
namespace {

LoweringSettings without_tf32() {
  LoweringSettings settings = sgd_momentum();
  settings.convolutions.tf32 = false;
  return settings;
}

/// The `values` after a node of the kernel has been perturbed.
std::vector<float> moved(Kernel kernel, std::vector<float> values, std::uint64_t seed) {
  const StepGraph graph = step_of(mlp, without_tf32());
  KernelNode node;
  node.kernel = kernel;
  const std::vector<TensorArgument> written{{reinterpret_cast<std::byte*>(values.data()),
                                             DataType::float32,
                                             {static_cast<std::int64_t>(values.size())}}};
  perturb_rounding(graph, node, written, seed);
  return values;
}

double moved_by(const StepGraph& graph, ResultKind kind, std::uint64_t seed) {
  const auto expected = run_resident_steps(graph, 2, 1);
  const auto other = run_resident_steps(graph, 2, 1, seed);
  REQUIRE(expected.has_value());
  REQUIRE(other.has_value());
  return difference(graph, results_of(graph), kind, other->front(), expected->front()).relative;
}

/// The host backend with other products: they differ by rounding, or by a share of 1.
class OtherwiseRounding : public WrappedBackend {
 public:
  OtherwiseRounding(const StepGraph& graph, float wrong) : graph_(graph), wrong_(wrong) {}
  Result<Ticket> run(const KernelCall& call) override {
    auto ticket = WrappedBackend::run(call);
    if (!ticket) return ticket;
    REQUIRE(synchronize().has_value());
    KernelNode node;
    node.kernel = call.kernel;
    perturb_rounding(graph_, node, call.writes, 77 + static_cast<std::uint64_t>(call.kernel));
    if (call.kernel == Kernel::linear_backward_filter) {
      *reinterpret_cast<float*>(call.writes[0].data) += wrong_;
    }
    return ticket;
  }

 private:
  const StepGraph& graph_;
  float wrong_;
};

const MeasuredDifference& gradients_of(const RunReport& report) {
  const auto found = std::ranges::find(report.measured.differences, ResultKind::gradient,
                                       &MeasuredDifference::kind);
  REQUIRE(found != report.measured.differences.end());
  return *found;
}

}  // namespace

TEST_CASE("a run that only rounds otherwise passes a tolerance that is too narrow, and says why") {
  const StepGraph graph = step_of(mlp, without_tf32());
  OtherwiseRounding backend(graph, 0);
  const auto report = run_plan(resident_plan(graph, 4), backend, {.tolerance = 1e-9});
  REQUIRE(report.has_value());
  CHECK(report->passed());
  const MeasuredDifference& gradients = gradients_of(*report);
  REQUIRE(gradients.rounding_effect.has_value());
  CHECK(gradients.tolerance == rounding_margin * *gradients.rounding_effect);
  const auto check = std::ranges::find(report->checks, "gradients", &Check::name);
  REQUIRE(check != report->checks.end());
  CHECK(check->detail.find("4 times what other rounding moves") != std::string::npos);
}

TEST_CASE("a wrong number is not laid to rounding") {
  const StepGraph graph = step_of(mlp, without_tf32());
  OtherwiseRounding backend(graph, 0.01F);
  for (const double tolerance : {1e-3, 1e-9}) {
    const auto report = run_plan(resident_plan(graph, 4), backend, {.tolerance = tolerance});
    REQUIRE(report.has_value());
    CHECK(!report->passed());
    CHECK(gradients_of(*report).tolerance < 2e-3);
  }
}

TEST_CASE("a sum moves by at most a few roundoffs of its tensor's size, as the seed has it") {
  const std::vector<float> values{1, -2, 3, 0, 1e-9F};
  const double size = std::sqrt(14.0 / 5);
  const std::vector<float> one = moved(Kernel::matmul, values, 1);
  CHECK(one == moved(Kernel::matmul, values, 1));
  CHECK(one != moved(Kernel::matmul, values, 2));
  CHECK(one != values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    // And by half a spacing of its own, since it is rounded to float32 again.
    CHECK(std::abs(one[i] - values[i]) <= 4 * 0x1p-24 * size + 0x1p-24 * std::abs(values[i]));
  }
  CHECK(one[3] != 0);  // a value that is 0 except for rounding is not 0 elsewhere
}

TEST_CASE("what is picked or moved keeps its bits") {
  const std::vector<float> values{1, -2, 3, 0};
  for (const Kernel kernel : {Kernel::max_pool_forward, Kernel::relu_forward, Kernel::copy,
                              Kernel::permute, Kernel::add, Kernel::dropout_forward}) {
    CHECK(moved(kernel, values, 1) == values);
  }
}

TEST_CASE("other rounding moves a small step's results by little, and every seed by other bits") {
  for (const char* model : {mlp, small_cnn, small_gpt2}) {
    const StepGraph graph = step_of(model, without_tf32());
    CAPTURE(graph.model);
    CHECK(moved_by(graph, ResultKind::loss, 0) == 0);
    CHECK(moved_by(graph, ResultKind::gradient, 0) == 0);
    for (const std::uint64_t seed : {1, 2}) {
      CHECK(moved_by(graph, ResultKind::loss, seed) < 1e-5);
      CHECK(moved_by(graph, ResultKind::gradient, seed) > 0);
      CHECK(moved_by(graph, ResultKind::gradient, seed) < 1e-2);
    }
  }
}

}  // namespace stowage::test
