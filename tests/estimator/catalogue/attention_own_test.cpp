// Attention as our executor runs it: what a step keeps, and which kernels it has.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "estimator/document/make_document.hpp"
#include "estimator/memory/sized_step.hpp"
#include "estimator/workspace/attention_workspace.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "tests/support/described_model.hpp"

using namespace stowage;

namespace {

/// 4 query heads of 8 features over 2 key heads, 16 positions.
std::string attention_in(std::string_view more, std::string_view layers = "") {
  return fmt::format(R"(
model: one call
inputs:
  x: {{shape: [batch, 16, 32]}}
layers:
  - linear: {{name: q_in, from: x, features: 32}}
  - reshape: {{shape: [batch, 16, 4, 8]}}
  - transpose: {{name: q, axes: [0, 2, 1, 3]}}
  - linear: {{name: k_in, from: x, features: 16}}
  - reshape: {{shape: [batch, 16, 2, 8]}}
  - transpose: {{name: k, axes: [0, 2, 1, 3]}}
{}  - scaled_dot_product_attention: {{name: attention, {}}}
loss:
  mse: {{from: [attention, attention]}}
)",
                     layers, more);
}

std::shared_ptr<const StepGraph> own_step(const std::string& text,
                                          Precision precision = Precision::fp32,
                                          Mode mode = Mode::train) {
  auto model = load_model(std::make_shared<const SourceText>(SourceText{"test.yaml", text}),
                          {.precision = precision});
  if (!model) throw std::runtime_error(render(model.error()));
  return testing::lowered(*model, {.kernels = KernelSet::stowage, .mode = mode});
}

/// "attention_forward attention.forward" and so on: the nodes of the operator, without the sum of
/// what arrives at k twice.
std::string nodes_of_attention(const StepGraph& graph) {
  std::string text;
  for (const KernelNode& node : graph.nodes) {
    if (!node.name.starts_with("attention.") || node.kernel == Kernel::accumulate) continue;
    text += fmt::format("{} {}\n", to_string(node.kernel), node.name);
  }
  return text;
}

const KernelNode& attention_node(const StepGraph& graph, Kernel kernel) {
  const auto found = std::ranges::find(graph.nodes, kernel, &KernelNode::kernel);
  if (found == graph.nodes.end()) throw std::runtime_error("no such node");
  return *found;
}

std::string implementation_in(const std::string& text, Precision precision) {
  return attention_node(*own_step(text, precision), Kernel::attention_forward)
      .attributes.text("implementation");
}

constexpr const char* learned_bias = "  - parameter: {name: bias, shape: [4, 16, 16]}\n";
constexpr const char* given_mask = "  - constant: {name: bias, shape: [16, 16], value: -1.0}\n";
constexpr const char* plain = "from: [q, k, k]";

}  // namespace

TEST_CASE("our executor's attention keeps a number a row of scores, and no scores") {
  const auto graph = own_step(attention_in("from: [q, k, k], causal: true, dropout: 0.1"));
  CHECK(nodes_of_attention(*graph) ==
        "attention_forward attention.forward\nattention_backward attention.backward\n");
  constexpr std::int64_t rows = std::int64_t{4} * 16;  // of scores
  Affine largest;
  for (const Storage& storage : graph->storages) {
    if (storage.name == "attention.logsumexp") {
      CHECK(storage.bytes == Affine(0, 4 * rows));
      CHECK(storage.storage_class == StorageClass::saved_auxiliary);
    }
    if (storage.name.starts_with("attention")) largest = std::max(largest, storage.bytes);
  }
  CHECK(largest == Affine(0, 4 * rows * 8));  // of q's size; scores would be twice that
  const KernelNode& forward = attention_node(*graph, Kernel::attention_forward);
  const KernelNode& backward = attention_node(*graph, Kernel::attention_backward);
  CHECK(forward.flops == Affine(0, 2 * rows * 16 * (8 + 8)));
  CHECK(backward.flops == Affine(0, 2 * rows * 16 * (3 * 8 + 2 * 8)));
  for (const KernelNode* node : {&forward, &backward}) {
    CHECK(node->attributes.real("dropout") == 0.1);
    CHECK(node->attributes.has("seed"));
    CHECK(node->attributes.boolean("causal"));
  }
  CHECK(backward.writes[1].shape == Shape{batch_symbol, 2, 16, 8});
}

TEST_CASE("an inference of our executor's attention keeps nothing and drops nothing") {
  const auto graph =
      own_step(attention_in("from: [q, k, k], dropout: 0.1"), Precision::fp32, Mode::inference);
  const KernelNode& node = attention_node(*graph, Kernel::attention_forward);
  CHECK(node.writes.size() == 1);
  CHECK(node.attributes.real("dropout") == 0);
}

TEST_CASE("a bias that learns gets its gradient in its own shape") {
  const auto graph =
      own_step(attention_in("from: [q, k, k, bias], causal: true", learned_bias), Precision::bf16);
  const KernelNode& backward = attention_node(*graph, Kernel::attention_backward);
  REQUIRE(backward.writes.size() == 4);
  CHECK(backward.writes[3].shape == Shape{4, 16, 16});
}

TEST_CASE(
    "attention of `implementation: math` stays products around a softmax, and Keras's is so") {
  const std::string products =
      "matmul attention.scores\nsoftmax_forward attention.softmax\nmatmul attention.forward\n"
      "matmul attention.backward.value\nmatmul attention.backward.weights\n"
      "softmax_backward attention.backward.softmax\nmatmul attention.backward.query\n"
      "matmul attention.backward.key\n";
  CHECK(nodes_of_attention(*own_step(attention_in("from: [q, k, k], implementation: math"))) ==
        products);
  const ModelGraph model = testing::described(attention_in(plain));
  const auto chosen = choose_step(model, {.kernels = KernelSet::stowage});
  REQUIRE(chosen.has_value());
  const auto keras = make_document(model, *chosen, Runtime::tensorflow, std::nullopt);
  REQUIRE(keras.has_value());
  CHECK(nodes_of_attention(*keras->graph) == products);
  const auto own = make_document(model, *chosen, Runtime::stowage, std::nullopt);
  REQUIRE(own.has_value());
  CHECK(nodes_of_attention(*own->graph) ==
        "attention_forward attention.forward\nattention_backward attention.backward\n");
}

TEST_CASE("cuDNN may run attention in 16 bits without dropout and without a bias that learns") {
  using enum Precision;
  CHECK(implementation_in(attention_in(plain), bf16) == "cudnn");
  CHECK(implementation_in(attention_in("from: [q, k, k], causal: true"), fp16) == "cudnn");
  CHECK(implementation_in(attention_in("from: [q, k, k, bias]", given_mask), bf16) == "cudnn");
  CHECK(implementation_in(attention_in(plain), fp32) == "own");
  CHECK(implementation_in(attention_in("from: [q, k, k], dropout: 0.25"), bf16) == "own");
  CHECK(implementation_in(attention_in("from: [q, k, k, bias]", learned_bias), bf16) == "own");
  CHECK(implementation_in(attention_in("from: [q, k, k, bias], causal: true", given_mask), bf16) ==
        "own");
}

TEST_CASE("attention that cuDNN may run asks for a workspace, where cuDNN has attention") {
  const auto graph = own_step(attention_in("from: [q, k, k], causal: true"), Precision::bf16);
  for (const double capability : {7.5, 8.0, 9.0}) {
    const auto source = rule_workspace_source(capability);
    const auto step = size_step(graph, 3, *source);
    REQUIRE(step.has_value());
    for (std::size_t i = 0; i < graph->nodes.size(); ++i) {
      const KernelNode& node = graph->nodes[i];
      if (node.kernel != Kernel::attention_backward) continue;
      REQUIRE(is_cudnn_attention(node));
      const AttentionQuery query = attention_query(*graph, node, 3);
      CHECK(query.causal);
      CHECK(query.key.shape == std::vector<std::int64_t>{3, 2, 16, 8});
      const Bytes workspace = step->first_workspace(NodeId::of(i));
      CHECK((workspace > frontend_workspace(query)) == (capability >= 8));
      CHECK((workspace == Bytes()) == (capability < 8));
    }
  }
  const auto own = own_step(attention_in(plain));
  CHECK(!wants_workspace(attention_node(*own, Kernel::attention_backward)));
}
