// What must hold of every row, and the shape rules' refusals.
#include <doctest/doctest.h>

#include <set>

#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/model/operator_row.hpp"

namespace stowage {

namespace {

Attributes defaults(const OperatorRow& row) {
  Attributes attributes;
  for (const AttributeSpec& spec : row.attributes) {
    if (spec.default_value) attributes.set(spec.name, *spec.default_value);
  }
  return attributes;
}

TensorType square_image(std::int64_t channels, std::int64_t size) {
  return {{batch_symbol, channels, size, size}, DataType::float32};
}

Attributes convolution(std::int64_t channels, std::int64_t kernel) {
  Attributes attributes = defaults(*find_operator("conv2d"));
  attributes.set("channels", channels);
  attributes.set("kernel", std::vector<std::int64_t>{kernel, kernel});
  return attributes;
}

std::string catalogue_refusal(std::string_view op, const Attributes& attributes,
                              std::vector<TensorType> inputs) {
  const auto result = find_operator(op)->infer(attributes, inputs);
  return result ? "" : result.error().message;
}

}  // namespace

TEST_CASE("every row is documented, and runs in every kernel set") {
  std::set<std::string_view> names;
  for (const OperatorRow& row : operator_catalogue()) {
    CAPTURE(row.name);
    CHECK(names.insert(row.name).second);
    CHECK(!row.doc.empty());
    CHECK((row.infer != nullptr));
    CHECK((row.lowering.stowage.forward != nullptr));
    std::set<std::string_view> attributes;
    for (const AttributeSpec& spec : row.attributes) {
      CAPTURE(spec.name);
      CHECK(attributes.insert(spec.name).second);
      CHECK(!spec.doc.empty());
      CHECK((spec.type == AttributeType::choice) <= !spec.choices.empty());
    }
    CHECK(find_operator(row.name) == &row);
  }
  CHECK(find_operator("conv2D") == nullptr);
}

TEST_CASE("a window is counted as PyTorch counts it") {
  CHECK(window_count(224, {.kernel = 7, .stride = 2, .padding_before = 3, .padding_after = 3}) ==
        112);
  CHECK(window_count(5, {.kernel = 3, .dilation = 2}) == 1);
  CHECK(window_count(4, {.kernel = 3, .dilation = 2}) == std::nullopt);
  CHECK(window_count(6, {.kernel = 3, .stride = 2}) == 2);
  CHECK(window_count(6, {.kernel = 3, .stride = 2, .ceil_mode = true}) == 3);
  // The last window would start in the right padding: not counted.
  const Window window{
      .kernel = 2, .stride = 3, .padding_before = 1, .padding_after = 1, .ceil_mode = true};
  CHECK(window_count(5, window) == 2);
}

TEST_CASE("broadcasting goes from the last axis, and keeps the batch symbol") {
  CHECK(broadcast({batch_symbol, 8, 4}, {1, 4}) == Shape{batch_symbol, 8, 4});
  CHECK(broadcast({batch_symbol, 1}, {7}) == Shape{batch_symbol, 7});
  CHECK(broadcast({2, 3}, {4}) == std::nullopt);
  CHECK(broadcast({batch_symbol}, {3}) == std::nullopt);
}

TEST_CASE("convolution: shape, parameters, flops") {
  const auto result =
      find_operator("conv2d")->infer(convolution(64, 3), std::vector{square_image(3, 32)});
  REQUIRE(result.has_value());
  CHECK(result->outputs.at(0).shape == Shape{batch_symbol, 64, 30, 30});
  CHECK(result->parameters.at(0).shape == Shape{64, 3, 3, 3});
  CHECK(result->parameters.at(1).shape == Shape{64});
  CHECK(result->flops == Affine(0, std::int64_t{2} * 64 * 30 * 30 * 27));
}

TEST_CASE("shape rules refuse with the reason") {
  CHECK(catalogue_refusal("conv2d", convolution(64, 7), {square_image(3, 5)}) ==
        "kernel 7 is larger than the padded input 5");
  Attributes grouped = convolution(64, 3);
  grouped.set("groups", std::int64_t{2});
  CHECK(catalogue_refusal("conv2d", grouped, {square_image(3, 8)}) ==
        "groups 2 does not divide its 3 input channels");
  CHECK(catalogue_refusal("conv2d", convolution(8, 1), {{{batch_symbol, 3}, DataType::float32}}) ==
        "wants [batch, channels, height, width], but its input has shape [batch, 3]");
  CHECK(catalogue_refusal("add", defaults(*find_operator("add")),
                          {square_image(3, 8), square_image(4, 8)}) ==
        "the shapes [batch, 3, 8, 8] and [batch, 4, 8, 8] do not go together");
  Attributes shape;
  shape.set("shape", Shape{batch_symbol, 100});
  CHECK(catalogue_refusal("reshape", shape, {square_image(3, 8)}) ==
        "[batch, 3, 8, 8] has 192*batch elements, [batch, 100] has 100*batch");
  CHECK(catalogue_refusal(
            "cross_entropy", defaults(*find_operator("cross_entropy")),
            {{{batch_symbol, 10}, DataType::float32}, {{batch_symbol}, DataType::float32}}) ==
        "logits [batch, 10] want an int64 target [batch], but it is float32 [batch]");
  Attributes table = defaults(*find_operator("embedding"));
  table.set("count", std::int64_t{10});
  table.set("features", std::int64_t{4});
  CHECK(catalogue_refusal("embedding", table, {square_image(1, 1)}) ==
        "wants integer indices, but its input is float32");
  Attributes positions = defaults(*find_operator("positions"));
  positions.set("length", std::int64_t{1025});
  CHECK(find_operator("positions")->infer(positions, {}).has_value());
  positions.set("at_most", std::int64_t{1024});
  CHECK(catalogue_refusal("positions", positions, {}) ==
        "a length of 1025 is more than the 1024 positions there are");
}

TEST_CASE("reshape finds the rest, also along the batch") {
  Attributes shape;
  shape.set("shape", Shape{-1, 64});
  const auto result = find_operator("reshape")->infer(
      shape, std::vector<TensorType>{{{batch_symbol, 16, 64}, DataType::float32}});
  REQUIRE(result.has_value());
  CHECK(result->outputs.at(0).shape == Shape{Affine(0, 16), 64});
}

}  // namespace stowage
