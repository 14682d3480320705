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
  const auto scores = read_equation("bid, bjd -> bij", 2);
  REQUIRE(scores.has_value());
  CHECK(scores->operands == std::vector<std::string>{"bid", "bjd"});
  CHECK(scores->result == "bij");
  CHECK(read_equation("ij,jk", 2)->result == "ik");
  CHECK(read_equation("ij,jk->ik", 3).error() == "it names 2 operands, and there are 3");
  CHECK(read_equation("ii->i", 1).error() == "'i' stands twice in 'ii': diagonals are not taken");
  CHECK(read_equation("...i->i", 1).error() == "an ellipsis is not taken; name the axes");
  CHECK(read_equation("ij->ik", 1).error() == "no operand has 'k' of the result");
  CHECK(read_equation("i1->i", 1).error() == "'1' is no letter");
}

TEST_CASE("operands of an einsum are taken together from the left, and summed as soon as can be") {
  const auto steps = einsum_steps(*read_equation("bij,bjk,bkl->bil", 3));
  REQUIRE(steps.size() == 2);
  CHECK(steps[0].contracted == "j");
  CHECK(steps[0].result == "bik");
  CHECK(steps[1].contracted == "k");
  const auto alone = einsum_steps(*read_equation("bid,j->bji", 2));
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
  CHECK(refused("index_add: {from: [x, i, x], axis: 1}") ==
        "'index_add_1': the source is [batch, 4, 6] where [batch, 3, 6] is needed");
  CHECK(refused("masked_fill: {from: [x, x], value: 0}") ==
        "'masked_fill_1': wants a boolean mask, but it is float32");
  CHECK(refused("topk: {from: x, count: 7}") ==
        "'topk_1': count 7 is more than axis 2 of [batch, 4, 6] has");
  CHECK(refused("var: {from: x, axes: [1], correction: 4}") ==
        "'var_1': a variance of 4 elements with a correction of 4 divides by none");
  CHECK(refused("norm: {from: x, p: 0}") == "'norm_1': p 0 counts elements, which has no gradient");
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
  CHECK(refused("norm: {from: x, p: -.inf}") ==
        "'p' of norm takes a number between 0 and inf, not the number -inf");
  CHECK(refused("elu: {from: x, alpha: .inf}") ==
        "'alpha' of elu takes a number, not the number inf");
}

}  // namespace stowage
