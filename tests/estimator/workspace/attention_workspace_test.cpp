// Where cuDNN's attention asks for its workspace, and with what question. The engines themselves:
// tests/gpu_probe/cudnn/attention_test.cpp.
#include "estimator/workspace/attention_workspace.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "estimator/memory/sized_step.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "estimator/workspace/runtime_workspace_source.hpp"
#include "tests/support/attention_call.hpp"
#include "tests/support/described_model.hpp"

using namespace stowage;
using testing::attention_call;

namespace {

class Recorder final : public WorkspaceSource {
 public:
  WorkspaceAnswer engines(const ConvolutionQuery&) override {
    return {.engines = {{"none", 0_B}}, .origin = WorkspaceOrigin::rule};
  }
  WorkspaceAnswer attention_engines(const AttentionQuery& query) override {
    asked.push_back(query);
    return {.engines = {{"recorded", 1000_B}}, .origin = WorkspaceOrigin::cudnn};
  }
  std::vector<AttentionQuery> asked;
};

const char* const text = R"(model: two layers of attention
inputs:
  x: {shape: [batch, 64, 128]}
layers:
  - linear: {name: q_made, from: x, features: 128}
  - linear: {name: k_made, from: x, features: 64}
  - linear: {name: v_made, from: x, features: 64}
  - reshape: {name: q_split, from: q_made, shape: [batch, 64, 4, 32]}
  - reshape: {name: k_split, from: k_made, shape: [batch, 64, 2, 32]}
  - reshape: {name: v_split, from: v_made, shape: [batch, 64, 2, 32]}
  - transpose: {name: q, from: q_split, axes: [0, 2, 1, 3]}
  - transpose: {name: k, from: k_split, axes: [0, 2, 1, 3]}
  - transpose: {name: v, from: v_split, axes: [0, 2, 1, 3]}
  - scaled_dot_product_attention: {name: one, from: [q, k, v], causal: true, dropout: 0.25}
  - scaled_dot_product_attention: {name: two, from: [q, k, v], causal: true, dropout: 0.25}
  - add: {name: both, from: [one, two]}
loss:
  mse: {from: [both, both]}
)";

std::shared_ptr<const StepGraph> graph_of(double capability, Mode mode = Mode::train) {
  auto model = load_model(std::make_shared<const SourceText>(SourceText{"test.yaml", text}),
                          {.precision = Precision::bf16});
  REQUIRE(model);
  return testing::lowered(
      *model, {.kernels = KernelSet::pytorch, .mode = mode, .compute_capability = capability});
}

}  // namespace

TEST_CASE("a step asks about each distinct call of cuDNN's attention once") {
  Recorder source;
  const auto graph = graph_of(9.0);
  const auto step = size_step(graph, 3, source);
  REQUIRE(step);
  REQUIRE(source.asked.size() == 2);
  const AttentionQuery& forward = source.asked[0];
  const AttentionQuery expected = attention_call(
      {.batch = 3, .heads = 4, .key_heads = 2, .length = 64, .features = 32, .dropout = 0.25},
      false);
  CHECK(forward == expected);
  const AttentionQuery& backward = source.asked[1];
  CHECK(backward.direction == AttentionQuery::Direction::backward);
  CHECK(backward.query == expected.query);
  CHECK(backward.output == expected.output);
  CHECK(backward.gradient.shape == expected.output.shape);
  CHECK(backward.gradient.strides.back() == 1);
  CHECK(step->workspace_origin == WorkspaceOrigin::cudnn);
  int wanted = 0;
  for (std::size_t i = 0; i < graph->nodes.size(); ++i) {
    if (!wants_workspace(graph->nodes[i])) continue;
    ++wanted;
    CHECK(step->first_workspace(NodeId::of(i)) == 1000_B);
    // It is the engine's, and not counted in the step besides.
    CHECK(graph->nodes[i].temporaries.empty());
  }
  CHECK(wanted == 4);
}

TEST_CASE("an inference keeps no statistics and drops nothing") {
  Recorder source;
  REQUIRE(size_step(graph_of(10.0, Mode::inference), 3, source));
  REQUIRE(source.asked.size() == 1);
  CHECK_FALSE(source.asked[0].statistics);
  CHECK(source.asked[0].dropout == 0);
}

TEST_CASE("flash and memory-efficient attention ask for nothing") {
  for (const double capability : {8.0, 8.6, 12.0}) {
    Recorder source;
    const auto step = size_step(graph_of(capability), 3, source);
    REQUIRE(step);
    CHECK(source.asked.empty());
    CHECK(step->workspace_origin == WorkspaceOrigin::none);
  }
}

TEST_CASE("the rule: what the frontend keeps, shared heads' gradients, what is dropped") {
  const auto rule = [](const testing::AttentionCall& call, bool backward, double capability) {
    return rule_workspace_source(capability)
        ->attention_engines(attention_call(call, backward))
        .engines[0]
        .workspace;
  };
  const testing::AttentionCall plain{.batch = 4, .heads = 16, .length = 2048};
  CHECK(rule(plain, false, 9.0) == 256_B);
  CHECK(rule(plain, true, 9.0) == 34'078'976_B);
  CHECK(rule(plain, false, 10.0) == 0_B);
  CHECK(rule(plain, true, 10.3) == 34'078'720_B);
  // The kernels before Hopper's sum the query's gradient once more.
  CHECK(rule(plain, true, 8.9) == 67'633'280_B);
  const testing::AttentionCall shared{
      .batch = 4, .heads = 16, .key_heads = 4, .length = 2048, .features = 128};
  CHECK(rule(shared, true, 9.0) == 134'742'272_B);
  CHECK(rule(shared, true, 10.0) == 134'742'144_B);
  CHECK(rule(shared, true, 8.9) == 201'851'008_B);
  const testing::AttentionCall dropping{.batch = 4, .heads = 16, .length = 1024, .dropout = 0.25};
  CHECK(rule(dropping, false, 10.0) == 8'388'736_B);
  CHECK(rule(dropping, true, 10.0) == 25'428'096_B);
  // Short calls are run by an older kernel, but not those of one query.
  const testing::AttentionCall one{
      .batch = 3, .heads = 8, .key_heads = 1, .length = 1, .keys = 777, .features = 8};
  CHECK(rule(one, true, 10.0) == 597'728_B);
  const testing::AttentionCall few{
      .batch = 3, .heads = 32, .key_heads = 8, .length = 128, .features = 64};
  CHECK(rule(few, true, 10.0) == 9'486'464_B);
  const testing::AttentionCall wide{
      .batch = 2, .heads = 8, .key_heads = 4, .length = 1024, .features = 256};
  CHECK(rule(wide, true, 10.0) == 50'397'312_B);
}

TEST_CASE("a source that knows no engines counts what the frontend keeps") {
  class Unknowing : public WorkspaceSource {
   public:
    WorkspaceAnswer engines(const ConvolutionQuery&) override { return {}; }
  };
  Unknowing source;
  const AttentionQuery query = attention_call({.batch = 1, .heads = 2, .length = 8}, true);
  CHECK(source.attention_engines(query).engines[0].workspace == Bytes(2 * 8 * (64 + 1) * 4));
  RuntimeWorkspaceSource passed_on(source, Runtime::pytorch);
  CHECK(passed_on.attention_engines(query).engines[0].workspace == Bytes(2 * 8 * (64 + 1) * 4));
}
