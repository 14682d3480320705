// Attention in tensor operations. That its bytes are PyTorch's is in tests/estimator/reference
// (models/compact/*-eager-*.json).
#include "estimator/adapt/written_attention.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "estimator/adapt/adapt.hpp"
#include "estimator/model/operator_row.hpp"
#include "estimator/rewrite/lower_step.hpp"

namespace stowage {

namespace {

/// Two blocks of attention over [batch, 6, 32], four heads of which two share a key's; `attributes`
/// of the attention.
std::string two_blocks(const std::string& attributes, bool checkpoint = false,
                       const std::string& masked = {}) {
  return fmt::format(R"(model: attends
source: a script, scaled_dot_product_attention
inputs:
  x: {{shape: [batch, 6, 32]}}
  seen: {{shape: [batch, 1, 6, 6], dtype: {3}}}
  y: {{shape: [batch, 6, 32]}}
blocks:
  heads:
    arguments: {{count: 4}}
    layers:
      - linear: {{name: proj, features: 8 * count}}
      - reshape: {{shape: [batch, 6, count, 8]}}
      - transpose: {{axes: [0, 2, 1, 3]}}
  block:
    layers:
      - heads: {{name: query, from: input.0}}
      - heads: {{name: key, from: input.0, count: 2}}
      - heads: {{name: value, from: input.0, count: 2}}
      - scaled_dot_product_attention: {{name: attention, from: [query, key, value{2}]{0}}}
      - transpose: {{axes: [0, 2, 1, 3]}}
      - reshape: {{shape: [batch, 6, 32]}}
      - add: {{from: [input.0, reshape_1]}}
layers:
  - block: {{name: h, from: [x, seen], repeat: 2, checkpoint: {1}}}
loss: {{mse: {{from: [h, y]}}}}
)",
                     attributes, checkpoint, masked.empty() ? "" : ", input.1",
                     masked.empty() ? "bool" : masked);
}

Result<ModelGraph> attending(const std::string& text, const std::string& attention,
                             Precision precision = Precision::fp32) {
  ModelOptions options{.precision = precision};
  if (!attention.empty()) options.arguments["attention"] = attention;
  return load_adapted(std::make_shared<const SourceText>(SourceText{"attends.yaml", text}),
                      options);
}

ModelGraph attending_model(const std::string& text, const std::string& attention,
                           Precision precision = Precision::fp32) {
  auto model = attending(text, attention, precision);
  if (!model) FAIL(render(model.error()));
  return *std::move(model);
}

/// "row name" of the operators whose name begins so.
std::vector<std::string> operators_of(const ModelGraph& model, const std::string& begin) {
  std::vector<std::string> found;
  for (const Operator& op : model.operators) {
    if (op.name.starts_with(begin)) found.push_back(fmt::format("{} {}", op.row->name, op.name));
  }
  return found;
}

std::string refusal_of_attention(const std::string& text, const std::string& attention) {
  const auto model = attending(text, attention);
  return model ? std::string() : render(model.error());
}

}  // namespace

TEST_CASE("attention=eager: products around a softmax, heads repeated, one mask for all layers") {
  const ModelGraph model = attending_model(two_blocks(", causal: true, dropout: 0.1"), "eager");
  CHECK(operators_of(model, "h.0.attention") ==
        std::vector<std::string>{
            "constant h.0.attention.causal_mask", "reshape h.0.attention.keys_groups",
            "expand h.0.attention.keys_wide", "reshape h.0.attention.keys_repeated",
            "reshape h.0.attention.values_groups", "expand h.0.attention.values_wide",
            "reshape h.0.attention.values_repeated", "matmul h.0.attention.scores",
            "scale h.0.attention.scaled", "add h.0.attention.causal",
            "softmax h.0.attention.weights", "dropout h.0.attention.kept", "matmul h.0.attention"});
  CHECK(operators_of(model, "h.1.attention").size() == 12);
  CHECK_FALSE(has_fused_attention(model));
  CHECK(model.source == "a script, eager attention");
  for (const Precision precision : {Precision::bf16, Precision::amp_bf16}) {
    const ModelGraph narrow =
        attending_model(two_blocks(", causal: true, written_out: wide"), "eager", precision);
    for (const KernelSet set : {KernelSet::pytorch, KernelSet::stowage}) {
      CHECK(lower_step(narrow, {.kernels = set}).has_value());
    }
  }
}

TEST_CASE("each way of writing attention out") {
  const auto style = [](const std::string& word) {
    auto found =
        operators_of(attending_model(two_blocks(fmt::format(", written_out: {}", word)), "eager"),
                     "h.1.attention.s");
    return found;
  };
  using Names = std::vector<std::string>;
  CHECK(style("scores") == Names{"matmul h.1.attention.scores", "scale h.1.attention.scaled"});
  CHECK(style("wide") == style("scores"));
  CHECK(style("query") == Names{"scale h.1.attention.scaled_query", "matmul h.1.attention.scores"});
  CHECK(style("product") == style("scores"));
}

TEST_CASE("a mask of booleans becomes one of numbers; checkpointed blocks share the causal one") {
  const ModelGraph masked = attending_model(two_blocks("", false, "bool"), "eager");
  CHECK(operators_of(masked, "h.0.attention.add") ==
        std::vector<std::string>{"cast h.0.attention.additive_mask"});
  CHECK(operators_of(masked, "h.0.attention.masked").size() == 1);
  const ModelGraph added = attending_model(two_blocks("", false, "float32"), "eager");
  CHECK(operators_of(added, "h.0.attention.add").empty());
  CHECK(operators_of(added, "h.0.attention.masked").size() == 1);
  const ModelGraph model = attending_model(two_blocks(", causal: true", true), "eager");
  const auto constant = std::ranges::find_if(
      model.operators, [](const Operator& op) { return op.row->name == "constant"; });
  REQUIRE(constant != model.operators.end());
  CHECK(constant->region == -1);
  CHECK(constant == model.operators.begin());
  CHECK(lower_step(model, {.kernels = KernelSet::pytorch}).has_value());
}

TEST_CASE("attention=sdpa changes nothing, flash-attn's functions are sized so and say it") {
  const std::string text = two_blocks(", causal: true");
  const ModelGraph described = attending_model(text, "");
  CHECK(attending_model(text, "sdpa").operators.size() == described.operators.size());
  CHECK(attending_model(text, "sdpa").warnings.size() == described.warnings.size());
  for (const std::string word : {"flash", "flash_attention_2"}) {
    const ModelGraph flash = attending_model(text, word);
    CHECK(flash.operators.size() == described.operators.size());
    REQUIRE(flash.warnings.size() == 1 + described.warnings.size());
    CHECK(flash.warnings.front().severity == Severity::note);
    CHECK(flash.warnings.front().message ==
          fmt::format("the attention '{}' is sized as 'sdpa'", word));
  }
}

TEST_CASE("an attention that is unknown, and a model that has none, are refused") {
  CHECK(refusal_of_attention(two_blocks(""), "paged") ==
        "<arguments>:1:11: error: the argument 'attention' takes sdpa, eager or flash, not "
        "'paged'\n"
        "  attention=paged\n"
        "            ^~~~~\n");
  const std::string plain =
      "model: plain\ninputs: {x: {shape: [batch, 4]}}\nlayers:\n  - linear: {features: 2}\n";
  for (const std::string word : {"eager", "sdpa", "flash"}) {
    CHECK(refusal_of_attention(plain, word) ==
          "error: the model 'plain' has no scaled_dot_product_attention, which the argument "
          "'attention' is about\n");
  }
  CHECK(attending_model("arguments: {attention: eager}\n" + plain, "other").operators.size() == 1);
}

}  // namespace stowage
