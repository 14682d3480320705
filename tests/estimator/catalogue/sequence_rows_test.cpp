// Refusals and figures of attention, positions, recurrent networks and custom operators.
#include <doctest/doctest.h>

#include "estimator/model/operator_row.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

Attributes with(std::string_view op, std::vector<std::pair<std::string_view, AttributeValue>> set) {
  Attributes attributes;
  for (const AttributeSpec& spec : find_operator(op)->attributes) {
    if (spec.default_value) attributes.set(spec.name, *spec.default_value);
  }
  for (auto& [name, value] : set) attributes.set(name, std::move(value));
  return attributes;
}

TensorType floats(Shape shape) { return {std::move(shape), DataType::float32}; }

std::string sequence_refusal(std::string_view op, const Attributes& attributes,
                             std::vector<TensorType> inputs) {
  const auto result = find_operator(op)->infer(attributes, inputs);
  return result ? "" : result.error().message;
}

constexpr std::string_view sdpa = "scaled_dot_product_attention";
const TensorType query = floats({batch_symbol, 8, 16, 64}), key = floats({batch_symbol, 2, 12, 64});

}  // namespace

TEST_CASE("attention refuses operands that do not go together") {
  const Attributes plain = with(sdpa, {});
  CHECK(sequence_refusal(sdpa, plain, {query, key, key}) == "");
  CHECK(sequence_refusal(sdpa, plain, {query, floats({batch_symbol, 3, 12, 64}), key}) ==
        "the query [batch, 8, 16, 64] and the key [batch, 3, 12, 64] differ in batch or features, "
        "or the key's heads do not divide the query's");
  CHECK(sequence_refusal(sdpa, plain, {query, key, floats({batch_symbol, 2, 13, 64})}) ==
        "the key [batch, 2, 12, 64] and the value [batch, 2, 13, 64] differ in batch, heads or "
        "length");
  CHECK(sequence_refusal(sdpa, plain, {query, key, key, floats({16, 16})}) ==
        "the mask [16, 16] does not broadcast to the scores [batch, 8, 16, 12]");
  CHECK(sequence_refusal(sdpa, plain, {query, key, key, {{16, 12}, DataType::int64}}) ==
        "the mask is int64, but a boolean one or float32 is wanted");
  CHECK(sequence_refusal(sdpa, with(sdpa, {{"implementation", std::string("flash")}}),
                         {query, key, key}) ==
        "flash attention runs in float16 and bfloat16 only, and its inputs are float32");
}

TEST_CASE("positions refuse what makes no table") {
  CHECK(sequence_refusal(
            "rotary_table",
            with("rotary_table", {{"length", std::int64_t{4}}, {"features", std::int64_t{5}}}),
            {}) == "5 features do not make pairs");
  CHECK(sequence_refusal("rotary", with("rotary", {}),
                         {floats({batch_symbol, 4, 6}), floats({4, 4}), floats({4, 4})}) ==
        "an input of [batch, 4, 6] is turned by tables of [4, 6], and this one is float32 [4, 4]");
  CHECK(sequence_refusal("relative_position_buckets",
                         with("relative_position_buckets", {{"heads", std::int64_t{2}},
                                                            {"queries", std::int64_t{4}},
                                                            {"keys", std::int64_t{4}},
                                                            {"max_distance", std::int64_t{8}}}),
                         {}) == "max_distance 8 is within the 8 distances that have a bucket each");
  CHECK(sequence_refusal("parameter", with("parameter", {{"shape", Shape{batch_symbol, 4}}}), {}) ==
        "a parameter's shape [batch, 4] may not depend on the batch");
}

TEST_CASE("tables with each angle once turn halves alone, and are made anew in each pass") {
  const TensorType x = floats({batch_symbol, 4, 6}), once = floats({4, 3});
  CHECK(sequence_refusal("rotary", with("rotary", {}), {x, once, once}) == "");
  CHECK(sequence_refusal("rotary", with("rotary", {{"layout", std::string("pairs")}}),
                         {x, once, once}) ==
        "neighbours are turned by tables that have each angle twice");
  CHECK(sequence_refusal("rotary_table",
                         with("rotary_table", {{"length", std::int64_t{4}},
                                               {"features", std::int64_t{6}},
                                               {"kept", std::string("tables")},
                                               {"repeated", false}}),
                         {}) == "tables that are kept have each angle twice");
}

TEST_CASE("sinks are a number a head") {
  const TensorType scores = floats({batch_symbol, 8, 16, 12});
  const auto refusal = [](const TensorType& x, const TensorType& sinks) {
    return sequence_refusal("sink_softmax", with("sink_softmax", {}), {x, sinks});
  };
  CHECK(refusal(scores, floats({8})) == "");
  CHECK(refusal(scores, floats({16})) ==
        "wants a number for each of 8 heads, but its input has shape [16]");
  CHECK(refusal(floats({batch_symbol, 16, 12}), floats({16})) ==
        "wants scores [batch, heads, queries, keys], but its input has shape [batch, 16, 12]");
  CHECK(refusal(scores, {{8}, DataType::int64}) ==
        "wants floating-point values, but its input is int64");
}

TEST_CASE("clamped experts have biases, and weights [experts, in, out]") {
  const TensorType rows = floats({batch_symbol, 6}), logits = floats({batch_symbol, 4});
  const TensorType up = floats({4, 6, 10}), down = floats({4, 5, 6});
  const TensorType up_bias = floats({4, 10}), down_bias = floats({4, 6});
  const auto refusal = [](std::string form, std::vector<TensorType> inputs) {
    return sequence_refusal(
        "routed_experts",
        with("routed_experts", {{"chosen", std::int64_t{2}}, {"form", std::move(form)}}),
        std::move(inputs));
  };
  CHECK(refusal("clamped", {rows, logits, up, down, up_bias, down_bias}) == "");
  CHECK(refusal("clamped", {rows, logits, up, down}) ==
        "of the form clamped it has 6 inputs, and 4 are given");
  CHECK(refusal("silu", {rows, logits, up, down, up_bias, down_bias}) ==
        "of the form silu it has 4 inputs, and 6 are given");
  CHECK(refusal("clamped", {rows, logits, floats({4, 10, 6}), down, up_bias, down_bias}) ==
        "weights [4, 10, 6] do not go with rows [batch, 6] and logits [batch, 4]");
  CHECK(refusal("clamped", {rows, logits, up, floats({4, 6, 5}), up_bias, down_bias}) ==
        "weights [4, 6, 5] want [4, 5, 6]");
  CHECK(refusal("clamped", {rows, logits, up, down, down_bias, down_bias}) ==
        "weights [4, 6] want [4, 10]");
}

TEST_CASE("recurrent networks: parameters in PyTorch's order, refusals") {
  const Attributes two =
      with("lstm",
           {{"hidden", std::int64_t{5}}, {"bidirectional", true}, {"projection", std::int64_t{2}}});
  const auto result = find_operator("lstm")->infer(two, std::vector{floats({7, batch_symbol, 3})});
  REQUIRE(result.has_value());
  REQUIRE(result->parameters.size() == 10);
  CHECK(result->parameters[1].name == "weight_hh_l0");
  CHECK(result->parameters[1].shape == Shape{20, 2});
  CHECK(result->parameters[4].name == "weight_hr_l0");
  CHECK(result->parameters[9].name == "weight_hr_l0_reverse");
  CHECK(result->outputs.at(0).shape == Shape{7, batch_symbol, 4});
  CHECK(sequence_refusal("lstm", two, {floats({batch_symbol, 3})}) ==
        "wants [sequence, batch, features], but its input has shape [batch, 3]");
  CHECK(sequence_refusal(
            "lstm", with("lstm", {{"hidden", std::int64_t{5}}, {"projection", std::int64_t{5}}}),
            {floats({7, batch_symbol, 3})}) == "projection 5 is not below hidden 5");
  CHECK(sequence_refusal("gru", with("gru", {{"hidden", std::int64_t{5}}}),
                         {floats({7, batch_symbol, 3}), floats({1, batch_symbol, 4})}) ==
        "a first state is float32 [1, batch, 5], but it is float32 [1, batch, 4]");
}

TEST_CASE("a custom operator counts what its description states") {
  const ModelGraph model = testing::described(R"(
model: m
inputs:
  x: {shape: [batch, 8]}
  target: {shape: [batch, 4]}
layers:
  - linear: {name: first, features: 8}
  - custom: {name: own, shape: [batch, 4], parameter: [8, 4], saved: [batch, 32], saves_inputs: true,
             forward_temporary: [1024], flops: [batch, 64]}
loss:
  mse: {from: [own, target]}
)");
  const auto graph = testing::lowered(model, {.kernels = KernelSet::pytorch});
  Affine saved, temporary;
  for (const Storage& storage : graph->storages) {
    if (storage.name == "own.saved") saved = storage.bytes;
    if (storage.name == "own.forward_temporary") temporary = storage.bytes;
  }
  CHECK(saved == Affine(0, 32));
  CHECK(temporary == Affine(1024));
  CHECK(graph->gradients.at(2).shape == Shape{8, 4});
  CHECK(sequence_refusal("custom", with("custom", {{"parameter", Shape{batch_symbol, 4}}}),
                         {query}) == "batch is not a constant dimension");
  CHECK(sequence_refusal("custom", with("custom", {{"shape", Shape{4}}, {"in_place", true}}),
                         {query}) ==
        "an output of float32 [4] does not take the place of an input of float32 "
        "[batch, 8, 16, 64]");
}

}  // namespace stowage
