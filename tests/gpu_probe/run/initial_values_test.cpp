// Initial values for which their first readers are defined.
#include "gpu_probe/run/initial_values.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

namespace stowage::test {
namespace {

/// A step whose inputs are read by one kernel each, at one position.
struct Reads {
  StepGraph graph;

  TensorView storage(const std::string& name, StorageClass storage_class,
                     Persistence persistence = Persistence::from_host) {
    graph.storages.push_back({.name = name,
                              .storage_class = storage_class,
                              .persistence = persistence,
                              .bytes = 4 * 1000});
    const Shape shape{1000};
    return {.storage = StorageId::of(graph.storages.size() - 1),
            .shape = shape,
            .strides = contiguous_strides(shape)};
  }
  TensorView input(const std::string& name) { return storage(name, StorageClass::input); }
  TensorView result(const std::string& name) {
    return storage(name, StorageClass::activation, Persistence::transient);
  }
  void call(Kernel kernel, std::vector<TensorView> reads, std::vector<TensorView> writes,
            const Attributes& attributes = {}) {
    graph.nodes.push_back({.kernel = kernel,
                           .reads = std::move(reads),
                           .writes = std::move(writes),
                           .attributes = attributes});
  }
  /// Least and largest value of a storage.
  std::pair<float, float> range(const TensorView& view) const {
    const auto bytes = initial_values(graph, 1)[view.storage.index()];
    std::vector<float> values(bytes.size() / sizeof(float));
    REQUIRE(values.size() == 1000);
    std::memcpy(values.data(), bytes.data(), bytes.size());
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    return {*least, *most};
  }
};

Attributes with(const std::string& name, const AttributeValue& value) {
  Attributes attributes;
  attributes.set(name, value);
  return attributes;
}

void check_within(std::pair<float, float> range, float least, float most) {
  CHECK(range.first >= least);
  CHECK(range.first < least + (most - least) / 10);
  CHECK(range.second <= most);
  CHECK(range.second > most - (most - least) / 10);
}

constexpr float root = 1.7320508F;  // square root of 3: uniform values of variance 1

}  // namespace

TEST_CASE("an input is of unit variance, unless what reads it wants something else") {
  Reads step;
  const TensorView x = step.input("x"), logits = step.input("logits"),
                   chances = step.input("chances"), target = step.input("target"),
                   goal = step.input("goal"), logs = step.input("logs"),
                   shares = step.input("shares"), divisor = step.input("divisor");
  const TensorView loss = step.result("loss");
  step.call(Kernel::unary_forward, {x}, {step.result("y")},
            with("function", std::string("sigmoid")));
  step.call(Kernel::bce_forward, {logits, target}, {loss}, with("logits", true));
  step.call(Kernel::bce_forward, {chances, goal}, {loss}, with("logits", false));
  step.call(Kernel::kl_div_forward, {logs, shares}, {loss});
  step.call(Kernel::divide, {x, divisor}, {step.result("ratio")});
  for (const TensorView& view : {x, logits, logs}) check_within(step.range(view), -root, root);
  for (const TensorView& view : {chances, target, goal, shares}) {
    check_within(step.range(view), 0, 1);
    CHECK(step.range(view).first > 0);
  }
  check_within(step.range(divisor), 0.05F, 1.95F);
}

TEST_CASE("what a logarithm, a root or a broken power is taken of is positive") {
  Reads step;
  const TensorView y = step.result("y");
  const auto read_by = [&](const char* function, double exponent) {
    const TensorView x = step.input(function + std::to_string(exponent));
    Attributes attributes = with("function", std::string(function));
    attributes.set("exponent", exponent);
    step.call(Kernel::unary_forward, {x}, {y}, attributes);
    return x;
  };
  const auto log = read_by("log", 0), sqrt = read_by("sqrt", 0), half = read_by("power", 0.5),
             inverse = read_by("power", -1), square = read_by("power", 2);
  for (const TensorView& view : {log, sqrt, half, inverse}) CHECK(step.range(view).first > 0);
  check_within(step.range(square), -root, root);
}

TEST_CASE("a copy is read as its original") {
  Reads step;
  const TensorView x = step.input("x"), moved = step.result("moved");
  step.call(Kernel::roll, {x}, {moved});
  step.call(Kernel::unary_forward, {moved}, {step.result("y")},
            with("function", std::string("log")));
  CHECK(step.range(x).first > 0);
}

TEST_CASE("normalisation weights and learnt slopes are near where training begins") {
  Reads step;
  const auto parameter = [&](const char* name) {
    return step.storage(name, StorageClass::parameter, Persistence::persistent);
  };
  const TensorView x = step.input("x"), y = step.result("y");
  const TensorView group = parameter("group"), shift = parameter("shift"), rms = parameter("rms"),
                   slope = parameter("slope"), bias = parameter("bias");
  step.call(Kernel::group_norm_forward, {x, group, shift}, {y});
  step.call(Kernel::rms_norm_forward, {x, rms}, {y});
  step.call(Kernel::prelu_forward, {x, slope}, {y});
  step.call(Kernel::add, {x, bias}, {y});
  check_within(step.range(group), 0.9F, 1.1F);
  check_within(step.range(rms), 0.9F, 1.1F);
  check_within(step.range(shift), -0.1F, 0.1F);
  check_within(step.range(bias), -0.1F, 0.1F);
  check_within(step.range(slope), 0.15F, 0.35F);
}

}  // namespace stowage::test
