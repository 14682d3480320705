// Refusals of element-by-element, joining and reducing operators, and what their tables promise.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "estimator/catalogue/unary_function.hpp"
#include "estimator/model/operator_row.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

Attributes settings(std::string_view op,
                    std::vector<std::pair<std::string_view, AttributeValue>> given = {}) {
  Attributes attributes;
  for (const AttributeSpec& spec : find_operator(op)->attributes) {
    if (spec.default_value) attributes.set(spec.name, *spec.default_value);
  }
  for (auto& [name, value] : given) attributes.set(name, std::move(value));
  return attributes;
}

TensorType float_tensor(Shape shape) { return {std::move(shape), DataType::float32}; }

std::string elementwise_refusal(std::string_view op, const Attributes& attributes,
                                const std::vector<TensorType>& inputs) {
  const auto result = find_operator(op)->infer(attributes, inputs);
  return result ? "" : result.error().message;
}

using Integers = std::vector<std::int64_t>;

const Shape six_channels{batch_symbol, 6, 4, 4};

}  // namespace

TEST_CASE("every function of the table is an operator") {
  std::set<std::string_view> names;
  for (const UnaryFunction& function : unary_functions()) {
    CAPTURE(function.name);
    CHECK(names.insert(function.name).second);
    const OperatorRow* row = find_operator(function.name);
    REQUIRE(row != nullptr);
    CHECK(row->autocast == function.autocast);
    // What saves its input can be overwritten only if autograd copies it or turns to the result.
    const bool in_place = function.in_place != UnaryFunction::InPlace::none;
    CHECK(in_place == (row->attributes.size() > function.attributes.size()));
    if (function.saves == UnaryFunction::Saves::result) {
      CHECK(function.in_place != UnaryFunction::InPlace::copy_of_input);
    }
  }
}

TEST_CASE("our executor's relu6 keeps the result and makes no copy, PyTorch's keeps a copy") {
  const ModelGraph model = testing::described(
      "model: m\ninputs: {x: {shape: [batch, 8]}, t: {shape: [batch], dtype: int64}}\nlayers:\n"
      "  - linear: {name: a, from: x, features: 8}\n  - relu6: {name: r, in_place: true}\n"
      "  - linear: {name: b, features: 4}\nloss: {cross_entropy: {from: [b, t]}}\n");
  const auto read_by_backward = [&](KernelSet kernels) {
    const auto step = testing::lowered(model, {.kernels = kernels});
    const auto node = std::ranges::find(step->nodes, "r.backward", &KernelNode::name);
    REQUIRE(node != step->nodes.end());
    return step->storage(node->reads.front().storage).name;
  };
  CHECK(read_by_backward(KernelSet::stowage) == "a");  // which relu6 has overwritten
  CHECK(read_by_backward(KernelSet::pytorch) == "r.input_copy");
}

TEST_CASE("activations refuse with the reason") {
  CHECK(elementwise_refusal("silu", settings("silu"), {{{batch_symbol}, DataType::int64}}) ==
        "wants floating-point values, but its input is int64");
  CHECK(elementwise_refusal("clamp", settings("clamp", {{"minimum", 2.0}, {"maximum", 1.0}}),
                            {float_tensor(six_channels)}) == "minimum 2 is above maximum 1");
  CHECK(elementwise_refusal("prelu", settings("prelu", {{"parameters", std::int64_t{4}}}),
                            {float_tensor(six_channels)}) ==
        "has 4 slopes, but axis 1 of [batch, 6, 4, 4] is not 4 wide");
  CHECK(elementwise_refusal("glu", settings("glu", {{"axis", std::int64_t{4}}}),
                            {float_tensor(six_channels)}) ==
        "axis 4 is outside its input's shape [batch, 6, 4, 4]");
  CHECK(elementwise_refusal("glu", settings("glu"), {float_tensor({batch_symbol, 5})}) ==
        "axis 1 of [batch, 5] has no two halves");
  CHECK(elementwise_refusal("glu", settings("glu", {{"axis", std::int64_t{0}}}),
                            {float_tensor(six_channels)}) ==
        "its halved axis (batch) may not depend on the batch");
  CHECK(elementwise_refusal("swiglu", settings("swiglu"),
                            {float_tensor({batch_symbol, 4}), float_tensor({batch_symbol, 5})}) ==
        "the shapes [batch, 4] and [batch, 5] do not go together");
}

TEST_CASE("arithmetic refuses with the reason, and promotes") {
  CHECK(elementwise_refusal("mul", settings("mul", {{"in_place", true}}),
                            {float_tensor({6, 1, 1}), float_tensor(six_channels)}) ==
        "its result [batch, 6, 4, 4] does not fit into its first input [6, 1, 1]");
  CHECK(elementwise_refusal("add", settings("add"),
                            {float_tensor({batch_symbol}), {{batch_symbol}, DataType::int64}}) ==
        "its inputs are float32 and int64");
  CHECK(
      elementwise_refusal("div", settings("div"),
                          {{{batch_symbol}, DataType::int64}, {{batch_symbol}, DataType::int64}}) ==
      "wants floating-point values, but its input is int64");
  const std::vector<TensorType> mixed{{{batch_symbol}, DataType::bfloat16},
                                      float_tensor({batch_symbol})};
  CHECK(find_operator("sub")->infer(settings("sub"), mixed)->outputs[0].type == DataType::float32);
  CHECK(
      find_operator("sub")->infer(settings("sub", {{"in_place", true}}), mixed)->outputs[0].type ==
      DataType::bfloat16);
  const std::vector<TensorType> scalar{{{batch_symbol}, DataType::bfloat16}, float_tensor({})};
  CHECK(find_operator("mul")->infer(settings("mul"), scalar)->outputs[0].type ==
        DataType::bfloat16);
  CHECK(find_operator("swiglu")->infer(settings("swiglu"), mixed)->outputs[0].type ==
        DataType::float32);
  CHECK(find_operator("concat")
            ->infer(settings("concat", {{"axis", std::int64_t{1}}}),
                    std::vector<TensorType>{{{batch_symbol, 2}, DataType::bfloat16},
                                            {{batch_symbol, 3}, DataType::float16}})
            ->outputs[0]
            .type == DataType::float32);
  CHECK(elementwise_refusal("scale", settings("scale", {{"shape", Shape{6}}}),
                            {float_tensor(six_channels)}) == "a shape is for what is learned");
  CHECK(elementwise_refusal("scale",
                            settings("scale", {{"learned", true}, {"shape", Shape{5, 1, 1}}}),
                            {float_tensor(six_channels)}) ==
        "a factor [5, 1, 1] does not go into [batch, 6, 4, 4]");
  CHECK(elementwise_refusal("scale", settings("scale", {{"learned", true}, {"factor", 0.5}}),
                            {float_tensor(six_channels)}) ==
        "a learned factor takes neither factor nor offset");
  CHECK(elementwise_refusal(
            "scale", settings("scale", {{"learned", true}, {"shape", Shape{batch_symbol}}}),
            {float_tensor(six_channels)}) == "batch is not a parameter's dimension");
}

TEST_CASE("reductions refuse with the reason") {
  CHECK(elementwise_refusal("mean", settings("mean", {{"axes", Integers{2, 4}}}),
                            {float_tensor(six_channels)}) ==
        "axis 4 is outside its input's shape [batch, 6, 4, 4]");
  CHECK(elementwise_refusal("sum", settings("sum", {{"axes", Integers{1, -3}}}),
                            {float_tensor(six_channels)}) == "axis -3 is named twice");
  CHECK(elementwise_refusal("mean", settings("mean"), {float_tensor(six_channels)}) ==
        "its averaged axis (batch) may not depend on the batch");
  CHECK(find_operator("sum")
            ->infer(settings("sum"), std::vector{float_tensor(six_channels)})
            ->outputs[0]
            .shape == Shape{});
  CHECK(elementwise_refusal("expand", settings("expand", {{"shape", Shape{6, 4}}}),
                            {float_tensor(six_channels)}) ==
        "[6, 4] has fewer axes than its input [batch, 6, 4, 4]");
  CHECK(elementwise_refusal("expand", settings("expand", {{"shape", Shape{-1, -1, 8, 4}}}),
                            {float_tensor(six_channels)}) ==
        "[batch, 6, 4, 4] does not expand to [-1, -1, 8, 4]");
  CHECK(elementwise_refusal("expand", settings("expand", {{"shape", Shape{-1, 4}}}),
                            {float_tensor({4})}) == "-1 is not a dimension");
}

TEST_CASE("joining and cutting refuse with the reason") {
  CHECK(elementwise_refusal("split", settings("split"), {float_tensor(six_channels)}) ==
        "wants either 'parts' or 'sizes'");
  CHECK(elementwise_refusal(
            "split", settings("split", {{"sizes", Integers{2, 3}}, {"axis", std::int64_t{1}}}),
            {float_tensor(six_channels)}) ==
        "sizes of 5 in all do not cut axis 1 of [batch, 6, 4, 4]");
  CHECK(elementwise_refusal(
            "split", settings("split", {{"parts", std::int64_t{4}}, {"axis", std::int64_t{1}}}),
            {float_tensor(six_channels)}) == "4 parts do not divide axis 1 of [batch, 6, 4, 4]");
  CHECK(elementwise_refusal("stack", settings("stack"),
                            {float_tensor(six_channels), float_tensor({batch_symbol, 6})}) ==
        "cannot stack [batch, 6, 4, 4] and [batch, 6]");
  CHECK(elementwise_refusal("stack", settings("stack", {{"axis", std::int64_t{5}}}),
                            {float_tensor(six_channels)}) ==
        "axis 5 is outside the result of stacking [batch, 6, 4, 4]");
  CHECK(elementwise_refusal("slice", settings("slice", {{"start", std::int64_t{6}}}),
                            {float_tensor(six_channels)}) ==
        "start 6 is outside axis 1 of [batch, 6, 4, 4]");
  CHECK(elementwise_refusal(
            "slice", settings("slice", {{"start", std::int64_t{-2}}, {"length", std::int64_t{3}}}),
            {float_tensor(six_channels)}) ==
        "a length of 3 from 4 on is more than axis 1 of [batch, 6, 4, 4] has");
  CHECK(elementwise_refusal("slice", settings("slice", {{"axis", std::int64_t{0}}}),
                            {float_tensor(six_channels)}) ==
        "its sliced axis (batch) may not depend on the batch");
  CHECK(elementwise_refusal("roll",
                            settings("roll", {{"shifts", Integers{1}}, {"axes", Integers{1, 2}}}),
                            {float_tensor(six_channels)}) == "1 shifts for 2 axes");
  CHECK(elementwise_refusal(
            "flatten", settings("flatten", {{"start", std::int64_t{2}}, {"end", std::int64_t{1}}}),
            {float_tensor(six_channels)}) ==
        "end 1 is not an axis of its input's shape [batch, 6, 4, 4] from start 2 on");
  CHECK(elementwise_refusal(
            "constant", settings("constant", {{"shape", Shape{batch_symbol}}, {"buffer", true}}),
            {}) == "a buffer's dimension batch may not depend on the batch");
}

}  // namespace stowage
