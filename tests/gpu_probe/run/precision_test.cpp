// Steps in every precision: the kernels accept what is lowered, the results are float64's except
// for rounding, and a plan leaves every bit of them.
#include "estimator/base/precision.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>

#include "gpu_probe/host/host_backend.hpp"
#include "gpu_probe/run/float_elements.hpp"
#include "gpu_probe/run/initial_values.hpp"
#include "gpu_probe/run/resident_step.hpp"
#include "gpu_probe/run/validate_run.hpp"
#include "tests/gpu_probe/run/operator_models.hpp"
#include "tests/gpu_probe/run/random_plan.hpp"
#include "tests/gpu_probe/run/small_models.hpp"

namespace stowage::test {
namespace {

constexpr std::array precisions{Precision::fp32,       Precision::fp64,      Precision::fp16,
                                Precision::bf16,       Precision::amp_fp16,  Precision::amp_bf16,
                                Precision::mixed_fp16, Precision::mixed_bf16};

/// The settings with the master weights that choose_step() gives the precision.
LoweringSettings with_masters(LoweringSettings settings, Precision precision) {
  if (has_master_weights(precision)) settings.optimizer.master_weights = MasterWeights::weights;
  return settings;
}

std::vector<double> numbers_of(const StepResults& results, const TensorView& view) {
  const FloatElements elements(results.at(view.storage), view.type);
  std::vector<double> numbers;
  for (std::size_t i = 0; i < elements.size(); ++i) numbers.push_back(elements[i]);
  return numbers;
}

double largest_of(const std::vector<double>& numbers) {
  double largest = 0;
  for (const double number : numbers) largest = std::max(largest, std::abs(number));
  return largest;
}

/// The loss and the parameters' gradients of a step with everything resident.
std::vector<std::vector<double>> results_in(const std::string& text, Precision precision) {
  const StepGraph graph = step_of(text.c_str(), with_masters(sgd_momentum(), precision), precision);
  const auto results = run_resident_step(graph, 4);
  const std::string refusal = results ? "" : results.error().front().message;
  CHECK(refusal == "");
  if (!results) return {};
  std::vector<std::vector<double>> numbers{numbers_of(*results, graph.losses.front())};
  for (const TensorView& gradient : graph.gradients) {
    numbers.push_back(gradient.storage.valid() ? numbers_of(*results, gradient)
                                               : std::vector<double>());
  }
  return numbers;
}

/// The largest difference, divided by a tensor's largest value or, if that is larger, by a tenth of
/// the largest gradient.
double distance(const std::vector<std::vector<double>>& actual,
                const std::vector<std::vector<double>>& expected) {
  REQUIRE(actual.size() == expected.size());
  double largest = 0, worst = 0;
  for (std::size_t t = 1; t < expected.size(); ++t)
    largest = std::max(largest, largest_of(expected[t]));
  for (std::size_t t = 0; t < expected.size(); ++t) {
    REQUIRE(actual[t].size() == expected[t].size());
    const double scale = std::max(largest_of(expected[t]), t == 0 ? 0 : largest / 10);
    for (std::size_t i = 0; i < expected[t].size(); ++i) {
      const double apart = std::abs(actual[t][i] - expected[t][i]) / scale;
      worst = std::isfinite(apart) ? std::max(worst, apart) : apart;
    }
  }
  return worst;
}

/// The tolerance: inputs and weights are rounded, so they are not those of float64.
double allowed(Precision precision) {
  if (precision == Precision::fp64) return 0;
  return precision == Precision::fp32 ? 1e-5 : 0.05;
}

/// By how much the loss falls in a few steps.
double loss_lost(const char* model, Precision precision) {
  const StepGraph graph = step_of(model, with_masters(adamw(), precision), precision);
  const auto steps = run_resident_steps(graph, 8, 12);
  REQUIRE(steps.has_value());
  const auto before = mean_loss(graph, steps->front()), after = mean_loss(graph, steps->back());
  REQUIRE((before && after));
  return *before - *after;
}

std::string failures_of_precision(const RunReport& report) {
  std::string text;
  for (const Check& check : report.checks) {
    if (!check.passed) text += check.name + ": " + check.detail + "\n";
  }
  return text;
}

void check_plan(const StepGraph& graph, std::uint64_t seed) {
  auto backend = open_host_backend();
  REQUIRE(backend.has_value());
  const auto report = run_plan(random_plan(graph, 2, seed), **backend, {.steps = 2});
  const std::string refusal = report ? "" : report.error().front().message;
  CHECK(refusal == "");
  if (report) CHECK(failures_of_precision(*report) == "");
}

}  // namespace

TEST_CASE("every operator's step in every precision ends near float64's") {
  std::map<Precision, double> worst;
  for (const OperatorModel& model : operator_models()) {
    const std::string text = operator_description(model);
    const auto expected = results_in(text, Precision::fp64);
    for (const Precision precision : precisions) {
      INFO(std::string(model.name), " in ", std::string(to_string(precision)));
      const double apart = distance(results_in(text, precision), expected);
      CHECK(apart <= allowed(precision));
      worst[precision] = std::max(worst[precision], apart);
    }
  }
  for (const auto& [precision, apart] : worst) {
    MESSAGE("largest relative difference from float64's in ", std::string(to_string(precision)),
            ": ", apart);
  }
}

TEST_CASE("plans drawn from the definition leave the bits of a step in every precision") {
  std::uint64_t seed = 0;
  std::size_t first = 0;  // every other precision of each model, in turn
  for (const char* const model :
       {mlp, small_cnn, small_resnet, small_gpt2, small_unet, small_lstm}) {
    for (std::size_t i = first++ % 2; i < precisions.size(); i += 2) {
      const LoweringSettings settings = ++seed % 4 < 2 ? adamw() : sgd_momentum(2);
      const StepGraph graph = step_of(model, with_masters(settings, precisions[i]), precisions[i]);
      INFO(graph.model, " in ", std::string(to_string(precisions[i])));
      check_plan(graph, seed);
    }
  }
  for (const OperatorModel& model : operator_models()) {
    const Precision precision = precisions[++seed % precisions.size()];
    INFO(std::string(model.name), " in ", std::string(to_string(precision)));
    const LoweringSettings settings = with_masters(adamw(), precision);
    check_plan(step_of(operator_description(model).c_str(), settings, precision), seed);
  }
}

TEST_CASE("plans with gradients in float32 beside parameters of 16 bits leave the step's bits") {
  for (LoweringSettings settings : {adamw(), sgd_momentum(3)}) {
    settings.optimizer.master_weights = MasterWeights::weights_and_gradients;
    const StepGraph graph = step_of(small_cnn, settings, Precision::mixed_fp16);
    for (const TensorView& gradient : graph.gradients) CHECK(gradient.type == DataType::float32);
    check_plan(graph, 7);
  }
}

TEST_CASE("a step starts from the same draws in every precision, rounded") {
  const auto values_in = [](const char* model, Precision precision) {
    const StepGraph graph = step_of(model, with_masters(sgd_momentum(), precision), precision);
    const auto bytes = initial_values(graph, 3);
    std::map<std::string, std::vector<double>> values;
    for (const KernelNode& node : graph.nodes) {
      for (const TensorView& view : node.reads) {
        const auto& of = bytes[view.storage.index()];
        if (!is_floating_point(view.type) || of.empty()) continue;
        const FloatElements elements(of, view.type);
        std::vector<double>& numbers = values[graph.storage(view.storage).name];
        numbers.clear();
        for (std::size_t i = 0; i < elements.size(); ++i) numbers.push_back(elements[i]);
      }
    }
    return values;
  };
  using Values = std::map<std::string, std::vector<double>>;
  const auto check_rounded = [](const Values& rounded, const Values& exact, DataType type) {
    std::vector<std::byte> element(8);
    for (const auto& entry : exact) {
      INFO(entry.first, " as ", std::string(to_string(type)));
      const std::vector<double>& found = rounded.at(entry.first);
      REQUIRE(found.size() == entry.second.size());
      for (std::size_t i = 0; i < found.size(); ++i) {
        set_element(element, type, 0, entry.second[i]);
        CHECK(found[i] == FloatElements(element, type)[0]);
      }
    }
  };
  const Values exact = values_in(small_cnn, Precision::fp64);
  check_rounded(values_in(small_cnn, Precision::fp32), exact, DataType::float32);
  check_rounded(values_in(small_cnn, Precision::fp16), exact, DataType::float16);
  check_rounded(values_in(small_cnn, Precision::bf16), exact, DataType::bfloat16);
  check_rounded(values_in(small_cnn, Precision::mixed_bf16), exact, DataType::bfloat16);
  // The optimizer's copy equals the parameter.
  const auto mixed = values_in(small_cnn, Precision::mixed_bf16);
  CHECK(mixed.at("conv1.weight.master") == mixed.at("conv1.weight"));
  // Under autocast a learnt slope is read through a copy.
  const std::string prelu = operator_description({"prelu", "4, 5", "  - prelu\n"});
  const auto slopes = values_in(prelu.c_str(), Precision::amp_bf16).at("prelu_1.weight");
  for (const double slope : slopes) CHECK(std::abs(slope - 0.25) <= 0.1);
}

TEST_CASE("results of 16 bits are compared as numbers") {
  const StepGraph graph = step_of(mlp, sgd_momentum(), Precision::bf16);
  const auto expected = run_resident_step(graph, 4);
  REQUIRE(expected.has_value());
  const TensorView& gradient = graph.gradients.front();
  StepResults changed = *expected;
  std::vector<std::byte>& bytes = changed.at(gradient.storage);
  const double largest = largest_of(numbers_of(*expected, gradient));
  set_element(bytes, gradient.type, 0, FloatElements(bytes, gradient.type)[0] + largest / 16);
  const Difference d =
      difference(graph, results_of(graph), ResultKind::gradient, changed, *expected);
  CHECK(d.finite);
  CHECK(d.unequal == 1);
  CHECK(d.relative > 0.05);
  CHECK(d.relative < 0.08);
  bytes[1] = std::byte{0x7f};
  bytes[0] = std::byte{0x80};  // infinity
  CHECK(std::isinf(
      difference(graph, results_of(graph), ResultKind::gradient, changed, *expected).absolute));
  CHECK(std::isfinite(mean_loss(graph, *expected).value()));
}

TEST_CASE("what 16 bits round away is kept in the parameters' float32 copies") {
  LoweringSettings settings = sgd_momentum();
  settings.optimizer.learning_rate = 1e-5;
  const StepGraph graph =
      step_of(small_cnn, with_masters(settings, Precision::mixed_bf16), Precision::mixed_bf16);
  const auto first = run_resident_steps(graph, 4, 1), fifth = run_resident_steps(graph, 4, 5);
  REQUIRE(first.has_value());
  REQUIRE(fifth.has_value());
  std::size_t copies = 0;
  for (const KernelNode& node : graph.nodes) {
    if (node.phase != Phase::update || node.kernel != Kernel::cast) continue;
    const TensorView &copy = node.reads[0], &parameter = node.writes[0];
    INFO(node.name);
    CHECK(copy.type == DataType::float32);
    const auto before = numbers_of(first->back(), copy), after = numbers_of(fifth->back(), copy),
               rounded = numbers_of(fifth->back(), parameter);
    std::size_t moved = 0, apart = 0;
    std::vector<std::byte> element(2);
    for (std::size_t i = 0; i < after.size(); ++i) {
      if (after[i] != before[i]) ++moved;
      set_element(element, DataType::bfloat16, 0, after[i]);
      if (FloatElements(element, DataType::bfloat16)[0] != rounded[i]) ++apart;
    }
    CHECK(moved * 2 > after.size());
    CHECK(apart == 0);
    ++copies;
  }
  CHECK(copies == 6);
}

TEST_CASE("a few steps in bfloat16 with float32 weights lower the loss as float32's do") {
  for (const char* const model : {mlp, small_cnn, small_resnet, small_lstm}) {
    const double in_float32 = loss_lost(model, Precision::fp32);
    CHECK(in_float32 > 0.05);
    for (const Precision precision : {Precision::amp_bf16, Precision::mixed_bf16}) {
      INFO(std::string(model), " in ", std::string(to_string(precision)));
      CHECK(loss_lost(model, precision) > 0.9 * in_float32);
    }
  }
}

}  // namespace stowage::test
