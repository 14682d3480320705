// Which sums of a step want a workspace on a card.
#include "estimator/runtime/sum_workspaces.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "estimator/check/check.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

const std::string wide = R"(model: wide
inputs:
  x: {shape: [batch, 197, 768]}
  target: {shape: [batch, 197, 768]}
layers:
  - linear: {name: up, features: 3072}
  - relu
  - linear: {name: down, features: 768}
loss:
  mse: {from: [down, target]}
)";

Card card_of(double compute_capability, int multiprocessors) {
  Card card = generic_card(80_GiB, compute_capability);
  card.sm_count = multiprocessors;
  return card;
}

const Card h100 = card_of(9.0, 132), rtx3090 = card_of(8.6, 82), t4 = card_of(7.5, 40);

SizedStep sized(const std::string& text, std::int64_t batch, const LoweringSettings& settings) {
  const auto source = rule_workspace_source(9.0);
  auto step = size_step(testing::lowered(testing::described(text), settings), batch, *source);
  REQUIRE(step);
  return *std::move(step);
}

const LoweringSettings pytorch{.kernels = KernelSet::pytorch};

using Workspaces = std::map<std::string, Bytes>;

Workspaces workspaces(const SizedStep& step) {
  Workspaces result;
  for (std::size_t i = 0; i < step.engines.size(); ++i) {
    for (const Engine& engine : step.engines[i]) {
      CHECK(engine.name == "pytorch sum");
      result[step.graph->nodes[i].name] = engine.workspace;
    }
  }
  return result;
}

}  // namespace

TEST_CASE("bias gradients want what the card's threads make of them") {
  const SizedStep step = sized(wide, 16, pytorch);
  CHECK(workspaces(step).empty());
  CHECK(workspaces(with_sum_workspaces(step, h100)) ==
        Workspaces{{"up.backward.bias", 75_MiB}, {"down.backward.bias", 18_MiB + 768_KiB}});
  // 41 parts of the 24 blocks over 3,072 columns; 50 of the 6 over 768.
  CHECK(
      workspaces(with_sum_workspaces(step, rtx3090)) ==
      Workspaces{{"up.backward.bias", 61_MiB + 512_KiB}, {"down.backward.bias", 18_MiB + 768_KiB}});
  // 320 blocks of 128 threads at once: 14 parts, and 50.
  CHECK(workspaces(with_sum_workspaces(step, t4)) ==
        Workspaces{{"up.backward.bias", 21_MiB}, {"down.backward.bias", 18_MiB + 768_KiB}});
}

TEST_CASE("a small batch wants nothing, and a step is not asked twice") {
  CHECK(workspaces(with_sum_workspaces(sized(wide, 5, pytorch), h100)).empty());  // 247 values
  const SizedStep once = with_sum_workspaces(sized(wide, 16, pytorch), h100);
  CHECK(workspaces(with_sum_workspaces(once, rtx3090)) == workspaces(once));
}

TEST_CASE("our own kernels and forward passes want none") {
  CHECK(workspaces(with_sum_workspaces(sized(wide, 16, {}), h100)).empty());
  const LoweringSettings forward{.kernels = KernelSet::pytorch, .mode = Mode::inference};
  CHECK(workspaces(with_sum_workspaces(sized(wide, 16, forward), h100)).empty());
}

TEST_CASE("a check on a card counts them where they are live") {
  const SizedStep step = sized(wide, 16, pytorch);
  const CheckReport large = check(step, h100, {}), small = check(step, t4, {});
  const std::vector<Bytes> tensors =
      live_bytes(step, {.granularity = 512_B}, storage_touches(*step.graph));
  Bytes peak;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (step.graph->nodes[i].name == "up.backward.bias") peak = tensors[i] + 75_MiB;
  }
  const Bytes libraries = 2 * 33'554'432_B;
  CHECK(large.peak_at() == "up.backward.bias");
  CHECK(large.tensor_bytes() == peak + libraries);
  CHECK(small.tensor_bytes() < large.tensor_bytes());
  CHECK(large.reserved_bytes() >= large.tensor_bytes());
}

TEST_CASE("a learned scale's gradient is such a sum, and what broadcasts inside is not summed") {
  KernelNode node{.kernel = Kernel::sum_to_shape};
  node.reads = {{.shape = {batch_symbol, 197, 768}, .strides = {151'296, 768, 1}}};
  node.writes = {{.shape = {1, 768}, .strides = {768, 1}}};
  const auto sum = tensor_sum(node, 16);
  REQUIRE(sum.has_value());
  REQUIRE(sum->axes.size() == 3);
  CHECK(sum->axes[0].summed);
  CHECK(sum->axes[1].summed);
  CHECK_FALSE(sum->axes[2].summed);
  CHECK(sum_scratch(*sum, {132, 2048}) == 18_MiB + 768_KiB);
}

TEST_CASE("a recorded sum says itself which axes it sums, counted from either end") {
  KernelNode node{.kernel = Kernel::foreign};
  node.foreign_kernel = Shared(std::string("aten::sum.dim_IntList"));
  node.reads = {{.shape = {3152, 3072}, .strides = {3072, 1}}};
  node.writes = {{.shape = {3072}, .strides = {1}}};
  for (const AttributeValue& axes :
       {AttributeValue(std::vector<std::int64_t>{0}), AttributeValue(std::int64_t{-2})}) {
    node.attributes.set("dim", axes);
    const auto sum = tensor_sum(node, 1);
    REQUIRE(sum.has_value());
    CHECK(sum_scratch(*sum, {132, 2048}) == 75_MiB);
  }
  node.attributes.set("dim", std::vector<std::int64_t>{7, -9});  // of no axis
  CHECK(sum_scratch(*tensor_sum(node, 1), {132, 2048}) == 0_B);
  node.attributes.set("dim", std::vector<std::int64_t>{});
  CHECK(tensor_sum(node, 1)->axes[1].summed);
  node.foreign_kernel = Shared(std::string("aten::add.Tensor"));
  CHECK_FALSE(tensor_sum(node, 1).has_value());
  node.kernel = Kernel::sum_to_shape;
  node.reads.clear();
  CHECK_FALSE(tensor_sum(node, 1).has_value());
}

}  // namespace stowage
