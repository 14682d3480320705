// What the rows of indices, masks, equations and axes refuse, and what infinity they take.
#include <doctest/doctest.h>

#include "estimator/catalogue/einsum_equation.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

/// What the reader says of a layer behind `x`: [batch, 4, 6], and int64 `i`: [3].
std::string refused(const std::string& layer) {
  const std::string text =
      "model: m\n"
      "inputs:\n"
      "  x: {shape: [batch, 4, 6]}\n"
      "  i: {shape: [3], dtype: int64}\n"
      "layers:\n"
      "- " +
      layer + "\n";
  const auto model = load_model(std::make_shared<const SourceText>(SourceText{"m.yaml", text}));
  return model ? "" : model.error().front().message;
}

}  // namespace

TEST_CASE("an einsum's equation is read as PyTorch reads it") {
  const auto read = [](std::string_view text, std::vector<std::size_t> ranks) {
    return read_equation(text, ranks);
  };
  const auto scores = read("bid, bjd -> bij", {3, 3});
  REQUIRE(scores.has_value());
  CHECK(scores->operands == std::vector<std::string>{"bid", "bjd"});
  CHECK(scores->result == "bij");
  CHECK(read("ij,jk", {2, 2})->result == "ik");
  CHECK(read("ij,jk->ik", {2, 2, 2}).error() == "it names 2 operands, and there are 3");
  CHECK(read("ij->ik", {2}).error() == "no operand has 'k' of the result");
  CHECK(read("ij->ii", {2}).error() == "'i' stands twice in the result");
  CHECK(read("i1->i", {2}).error() == "'1' is no letter");
  CHECK(read("ij->i", {3}).error() == "'ij' names 2 axes, and the operand has 3");
  CHECK(read("i..j->i", {3}).error() == "an ellipsis has three points");
  CHECK(read("...i...->i", {3}).error() == "two ellipses in one operand");
  CHECK(read("ijk...->i", {2}).error() == "'ijk...' names 3 axes, and the operand has 2");
}

TEST_CASE(
    "the axes of an einsum's ellipsis are aligned at the last, and stand first in the result") {
  const std::vector<std::size_t> ranks{4, 3};
  const auto implied = read_equation("...ij,...jk", ranks);
  REQUIRE(implied.has_value());
  CHECK(implied->operands == std::vector<std::string>{"89ij", "9jk"});
  CHECK(implied->result == "89ik");
  CHECK(read_equation("i...j,...jk->k...i", ranks)->result == "k89i");
  CHECK(read_equation("...ij,...jk->ik", ranks)->result == "ik");
}

TEST_CASE("einsum takes diagonals and drops axes of one element") {
  const std::vector<std::size_t> ranks{3, 3};
  const std::vector<Shape> shapes{{5, 5, 4}, {1, 5, 1}};
  const auto equation = read_equation("iij,kij->ijk", ranks);
  REQUIRE(equation.has_value());
  const EinsumEquation reduced = reduced_equation(*equation, shapes);
  CHECK(reduced.operands == std::vector<std::string>{"ij", "i"});
  CHECK(reduced.result == "ij");
}

TEST_CASE("operands of an einsum are taken together from the left, and summed as soon as can be") {
  const std::vector<std::size_t> ranks{3, 3, 3}, short_ranks{3, 1};
  const auto steps = einsum_steps(*read_equation("bij,bjk,bkl->bil", ranks));
  REQUIRE(steps.size() == 2);
  CHECK(steps[0].contracted == "j");
  CHECK(steps[0].result == "bik");
  CHECK(steps[1].contracted == "k");
  const auto alone = einsum_steps(*read_equation("bid,j->bji", short_ranks));
  REQUIRE(alone.size() == 1);
  CHECK(alone[0].left_sums == "d");
  CHECK(alone[0].contracted == "");
}

TEST_CASE("rows of indices, masks and axes refuse with the reason") {
  CHECK(refused("index: {from: [x, i, i, i], axis: 1}") ==
        "'index_1': 3 indices from axis 1 on are more than [batch, 4, 6] has axes");
  CHECK(refused("index: {from: [x, x], axis: 1}") ==
        "'index_1': wants int64 indices, but they are float32");
  CHECK(refused("gather: {from: [x, i], axis: 1}") ==
        "'gather_1': the indices [3] do not go with [batch, 4, 6] along axis 1");
  CHECK(refused("embedding: {from: i, count: 5, features: 2, at_most: 3}").empty());
  CHECK(refused("embedding: {from: i, count: 5, features: 2, at_most: 2}") ==
        "'embedding_1': a length of 3 is more than the 2 positions there are");
  CHECK(refused("index_add: {from: [x, i, x], axis: 1}") ==
        "'index_add_1': the source is [batch, 4, 6] where [batch, 3, 6] is needed");
  CHECK(refused("masked_fill: {from: [x, x], value: 0}") ==
        "'masked_fill_1': wants a boolean mask, but it is float32");
  CHECK(refused("topk: {from: x, count: 7}") ==
        "'topk_1': count 7 is more than axis 2 of [batch, 4, 6] has");
  CHECK(refused("var: {from: x, axes: [1], correction: 4}") ==
        "'var_1': a variance of 4 elements with a correction of 4 divides by none");
  CHECK(refused("norm: {from: x, p: 0}").empty());
  CHECK(refused("norm: {from: x, p: -.inf}").empty());
  CHECK(refused("slice_scatter: {from: [x, i]}") ==
        "'slice_scatter_1': a part [3] and 3 starts do not go with [batch, 4, 6]");
  CHECK(refused("slice_scatter: {from: [x, x], start: [0, 1, 0]}") ==
        "'slice_scatter_1': [batch, 4, 6] from place 1 of axis 1 on is no part of [batch, 4, 6]");
  CHECK(refused("scatter: {from: [x, i], axis: 1}") ==
        "'scatter_1': the indices [3] do not go with [batch, 4, 6] along axis 1");
  CHECK(refused("scaled_dot_product_attention: {from: [x, x, x], implementation: efficient}") ==
        "");
  CHECK(
      refused("scaled_dot_product_attention: {from: [i, i, i]}") ==
      "'scaled_dot_product_attention_1': wants [batch, heads, length, features], or three or five "
      "axes, alike for all inputs, but its input has shape [3]");
  CHECK(refused("amax: {from: x, axes: [3]}") ==
        "'amax_1': axis 3 is outside its input's shape [batch, 4, 6]");
  CHECK(refused("tile: {from: x, repeats: [2]}") ==
        "'tile_1': 1 repeats are fewer than its input [batch, 4, 6] has axes");
  CHECK(refused("fold: {from: x, size: [4, 4], kernel: 2}") ==
        "'fold_1': an image of 4 by 4 has 9 windows, and its input [batch, 4, 6] has 6");
  CHECK(refused("conv1d: {from: [x, x], channels: 2, kernel: 3}") ==
        "'conv1d_1': the filter is [batch, 4, 6] where [2, 4, 3] is needed");
  CHECK(refused("batch_norm: {from: [x, x]}") ==
        "'batch_norm_1': has a learned weight and one as second input");
  CHECK(refused("clamp: {from: x}") == "'clamp_1': has neither a minimum nor a maximum");
  CHECK(refused("einsum: {from: [x, x], equation: \"bij,bkj\"}") == "");
  CHECK(refused("einsum: {from: [x, x], equation: \"bij,cij->bc\"}") ==
        "'einsum_1': more than one axis depends on the batch");
}

TEST_CASE("infinity is a number where an attribute takes it, and nowhere else") {
  CHECK(refused("pad: {from: x, before: [1], value: -.inf}") == "");
  CHECK(refused("clamp: {from: x, minimum: 0, maximum: .inf}") == "");
  CHECK(refused("clamp: {from: x, minimum: .inf}") ==
        "'minimum' of clamp takes a number or -.inf, not the number inf");
  CHECK(refused("elu: {from: x, alpha: .inf}") ==
        "'alpha' of elu takes a number, not the number inf");
}

}  // namespace stowage
