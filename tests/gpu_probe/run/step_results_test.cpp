#include "gpu_probe/run/step_results.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "gpu_probe/run/initial_values.hpp"
#include "gpu_probe/run/rounding_masks.hpp"
#include "tests/gpu_probe/run/small_models.hpp"

namespace stowage::test {
namespace {

std::vector<std::byte> bytes_of(const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <typename Value>
std::vector<Value> values_of(const std::vector<std::byte>& bytes) {
  std::vector<Value> values(bytes.size() / sizeof(Value));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

StorageId storage(const StepGraph& graph, const std::string& name) {
  for (std::size_t i = 0; i < graph.storages.size(); ++i) {
    if (graph.storages[i].name == name) return StorageId::of(i);
  }
  FAIL("no storage ", name);
  return {};
}

/// The names of results of a kind, in order, with the node that they are read after.
std::vector<std::string> named(const StepGraph& graph, ResultKind kind) {
  std::vector<std::string> names;
  for (const ResultPlace& place : results_of(graph)) {
    if (place.kind != kind) continue;
    const auto after = static_cast<std::size_t>(place.after);
    names.push_back(graph.storage(place.storage).name + " after " +
                    (after == graph.nodes.size() ? "the step" : graph.nodes[after].name));
  }
  return names;
}

constexpr double infinite = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("gradients and losses are read when they are complete, what persists at the end") {
  const StepGraph graph = step_of(mlp, sgd_momentum());
  CHECK(named(graph, ResultKind::loss) == std::vector<std::string>{"loss after loss.forward"});
  CHECK(named(graph, ResultKind::gradient) ==
        std::vector<std::string>{
            "fc3.weight.grad after fc3.backward.filter", "fc3.bias.grad after fc3.backward.bias",
            "fc2.weight.grad after fc2.backward.filter", "fc2.bias.grad after fc2.backward.bias",
            "fc1.weight.grad after fc1.backward.filter", "fc1.bias.grad after fc1.backward.bias"});
  CHECK(named(graph, ResultKind::parameter).front() == "fc1.weight after the step");
  CHECK(named(graph, ResultKind::parameter).size() == 6);
  CHECK(named(graph, ResultKind::optimizer_state).size() == 6);
  CHECK(named(graph, ResultKind::buffer).empty());
  CHECK(named(graph, ResultKind::output).empty());
}

TEST_CASE("accumulated gradients are read after the last micro-batch, running statistics too") {
  const StepGraph graph = step_of(small_resnet, adamw(2));
  CHECK(named(graph, ResultKind::loss).size() == 2);
  for (const std::string& name : named(graph, ResultKind::gradient)) {
    CHECK_MESSAGE(name.find("@1") != std::string::npos, name);
  }
  CHECK(named(graph, ResultKind::buffer).size() == 2 * 6);  // num_batches_tracked is never touched
}

TEST_CASE("what has no size of its own is measured against a share of its kind's largest") {
  const StepGraph graph = step_of(mlp, sgd_momentum());
  const StorageId id = storage(graph, "fc1.bias.grad"), other = storage(graph, "fc2.bias.grad");
  const std::vector<ResultPlace> places{{id, ResultKind::gradient, DataType::float32, 0},
                                        {other, ResultKind::gradient, DataType::float32, 0}};
  const StepResults expected{{id, bytes_of({1e-7F, 0})}, {other, bytes_of({16, -2})}};
  const StepResults actual{{id, bytes_of({-1e-7F, 0})}, {other, bytes_of({16, -2})}};
  const Difference d = difference(graph, places, ResultKind::gradient, actual, expected);
  CHECK(d.unequal == 1);
  CHECK(d.relative == doctest::Approx(2e-7 / (small_share * 16)));
  CHECK(d.worst == "fc1.bias.grad");
}

TEST_CASE("a step whose direction rounding chose is left out where it is asked for") {
  const StepGraph graph = step_of(mlp, adamw());
  const StorageId weight = storage(graph, "fc1.bias"), gradient = storage(graph, "fc1.bias.grad");
  std::vector<float> gradients(16, 1), values(16, 3);
  gradients[5] = 1e-7F;
  gradients[6] = 1e-4F;
  const StepResults expected{{gradient, bytes_of(gradients)}, {weight, bytes_of(values)}};
  const ElementMasks masks = rounding_masks(graph, expected);
  REQUIRE(masks.contains(weight));
  std::vector<bool> mask(16, false);
  mask[5] = true;
  CHECK(masks.at(weight) == mask);
  CHECK(rounding_masks(step_of(mlp, sgd_momentum()), expected).empty());

  const std::vector<ResultPlace> places{{weight, ResultKind::parameter, DataType::float32, 0}};
  const auto measure = [&](float fifth, float sixth) {
    values[5] = fifth;
    values[6] = sixth;
    return difference(graph, places, ResultKind::parameter, {{weight, bytes_of(values)}}, expected,
                      masks);
  };
  CHECK(measure(2, 3).relative == 0);
  CHECK(measure(2, 3).ignored == 1);
  CHECK(measure(2, 3).unequal == 1);
  CHECK(measure(3, 2).relative == doctest::Approx(1.0 / 3));
  CHECK(measure(NAN, 3).relative == infinite);
}

TEST_CASE("differences are counted by the bit and measured against the largest value") {
  const StepGraph graph = step_of(mlp, sgd_momentum());
  const StorageId id = storage(graph, "fc1.bias.grad"), other = storage(graph, "fc2.bias.grad");
  const std::vector<ResultPlace> places{{id, ResultKind::gradient, DataType::float32, 0},
                                        {other, ResultKind::gradient, DataType::float32, 0}};
  const StepResults expected{{id, bytes_of({1, -8, 2})}, {other, bytes_of({1, 1})}};
  StepResults actual = expected;
  const auto measure = [&] {
    return difference(graph, places, ResultKind::gradient, actual, expected);
  };
  CHECK(measure().tensors == 2);
  CHECK(measure().unequal == 0);
  CHECK(measure().relative == 0);
  actual[id] = bytes_of({1, -8, 2.5F});
  CHECK(measure().unequal == 1);
  CHECK(measure().absolute == 0.5);
  CHECK(measure().relative == 0.5 / 8);
  CHECK(measure().worst == "fc1.bias.grad");
  actual[id] = bytes_of({1, -8, std::nanf("")});
  CHECK(measure().relative == infinite);
  actual.erase(id);
  CHECK(measure().unequal == 1);
  CHECK(measure().relative == infinite);
  actual[id] = bytes_of({1, -8});
  CHECK(measure().relative == infinite);
}

TEST_CASE("negative zero is another bit pattern, though no distance away") {
  const StepGraph graph = step_of(mlp, sgd_momentum());
  const StorageId id = storage(graph, "fc1.bias.grad");
  const std::vector<ResultPlace> places{{id, ResultKind::gradient, DataType::float32, 0}};
  const Difference d = difference(graph, places, ResultKind::gradient, {{id, bytes_of({-0.0F, 1})}},
                                  {{id, bytes_of({0.0F, 1})}});
  CHECK(d.unequal == 1);
  CHECK(d.relative == 0);
}

TEST_CASE("a reference that is not finite is told") {
  const StepGraph graph = step_of(mlp, sgd_momentum());
  const StorageId id = storage(graph, "fc1.bias.grad");
  const std::vector<ResultPlace> places{{id, ResultKind::gradient, DataType::float32, 0}};
  const StepResults both{{id, bytes_of({1, std::nanf("")})}};
  const Difference d = difference(graph, places, ResultKind::gradient, both, both);
  CHECK(!d.finite);
  CHECK(d.relative == infinite);
}

TEST_CASE(
    "initial values: the same each time, weights by fan-in, statistics neutral, ids in range") {
  const StepGraph graph = step_of(small_resnet, adamw());
  const auto values = initial_values(graph, 5);
  CHECK(initial_values(graph, 5) == values);
  const auto floats = [&](const char* name) {
    return values_of<float>(values[storage(graph, name).index()]);
  };
  const double bound = std::sqrt(3.0 / (3 * 3 * 3));
  double largest = 0;
  for (const float w : floats("conv1.weight")) largest = std::max<double>(largest, std::abs(w));
  CHECK(largest <= bound);
  CHECK(largest > 0.9 * bound);
  for (const float w : floats("bn1.weight")) CHECK(std::abs(w - 1) <= 0.1F);
  for (const float m : floats("bn1.running_mean")) CHECK(m == 0);
  for (const float v : floats("bn1.running_var")) CHECK(v == 1);
  for (const float s : floats("conv1.weight.exp_avg")) CHECK(s == 0);
  const auto labels = values_of<std::int64_t>(values[storage(graph, "label").index()]);
  CHECK(labels.size() == 5);
  for (const std::int64_t label : labels) CHECK((label >= 0 && label < 6));
  CHECK(floats("conv1.weight") != floats("layer1.conv1.weight"));
  CHECK(values[storage(graph, "bn1").index()].empty());  // an activation has no value yet
}

TEST_CASE("tokens and the targets that are made of them are rows of the table") {
  const StepGraph graph = step_of(small_gpt2, adamw());
  const auto values = initial_values(graph, 3);
  for (const char* name : {"tokens", "labels"}) {
    std::int64_t largest = 0;
    for (const auto id : values_of<std::int64_t>(values[storage(graph, name).index()])) {
      CHECK((id >= 0 && id < 23));
      largest = std::max(largest, id);
    }
    CHECK(largest > 10);
  }
}

}  // namespace stowage::test
