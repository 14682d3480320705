// The drawing of a plan, by rows of blocks (plan_rows.hpp, dot.hpp).
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "planner/export/dot.hpp"
#include "planner/export/plan_rows.hpp"
#include "tests/support/hand_made_plan.hpp"

namespace stowage {

namespace {

using Names = std::vector<std::string>;

/// The hand-made plan, whose nodes and storages are of the layers fc1, fc2 and loss.
Plan layered_plan() {
  Plan plan = hand_made::plan();
  StepGraph graph = *plan.step.graph;
  graph.origins = {{.layer = "fc1"}, {.layer = "fc2"}, {.layer = "loss"}};
  const std::vector<int> of_nodes{0, 1, 2, 1, -1};
  for (std::size_t i = 0; i < of_nodes.size(); ++i) graph.nodes[i].op = OperatorId{of_nodes[i]};
  const std::vector<int> of_storages{-1, 0, 1, 0, 1, 2, 1, 2};
  for (std::size_t i = 0; i < of_storages.size(); ++i) {
    graph.storages[i].op = OperatorId{of_storages[i]};
  }
  plan.step.graph = std::make_shared<const StepGraph>(std::move(graph));
  return plan;
}

struct DescribedLayer {
  const char* path;
  std::int64_t parameter_bytes = 0;
  bool is_on_cpu = false;
};

/// A plan with a node and a parameter for each layer.
Plan plan_of(const std::vector<DescribedLayer>& layers) {
  Plan plan;
  StepGraph graph;
  for (const DescribedLayer& layer : layers) {
    const OperatorId op{static_cast<std::int32_t>(graph.origins.size())};
    graph.origins.push_back({.layer = layer.path});
    graph.storages.push_back({.name = fmt::format("{}.weight", layer.path),
                              .storage_class = StorageClass::parameter,
                              .persistence = Persistence::persistent,
                              .bytes = layer.parameter_bytes,
                              .op = op});
    plan.step.storage_bytes.emplace_back(layer.parameter_bytes);
    graph.nodes.push_back({.name = layer.path, .op = op});
    plan.nodes.push_back({.processor = layer.is_on_cpu ? cpu_processor : gpu_processor});
  }
  plan.step.graph = std::make_shared<const StepGraph>(std::move(graph));
  return plan;
}

}  // namespace

TEST_CASE("a plan is drawn with a row a layer, copies as edges with bytes, and a legend") {
  CHECK(export_dot(layered_plan()).value() ==
        R"(digraph " cheapest" {
  rankdir=TB;
  node [shape=box, style=filled, fontname="Helvetica", fontsize=10];
  edge [fontname="Helvetica", fontsize=8];
  legend [shape=plaintext, style="", label=<<table border="0" cellborder="0" cellspacing="2"><tr><td align="left" bgcolor="#e2f0d9">kernels on the GPU</td></tr><tr><td align="left" bgcolor="#cfe2f3">kernels on the CPU</td></tr><tr><td align="left" bgcolor="#f3f3f3">host memory: what is copied or read there</td></tr><tr><td align="left">black: stays on the GPU</td></tr><tr><td align="left"><font color="red">red: copied between GPU and host</font></td></tr><tr><td align="left"><font color="blue">blue: read on the host</font></td></tr></table>>];
  f0 [label="fc1\nforward: 1 on the GPU", fillcolor="#e2f0d9"];
  f1 [label="fc2, loss\nforward: 2 on the GPU", fillcolor="#e2f0d9"];
  b1 [label="fc2, loss\nbackward: 1 on the GPU", fillcolor="#e2f0d9"];
  u1 [label="fc2, loss\nupdate: 1 on the CPU", fillcolor="#cfe2f3"];
  h0 [label="host memory\ninput 256 B\nactivation 1.0 KiB", shape=cylinder, fillcolor="#f3f3f3"];
  h1 [label="host memory\nparameter 768 B\ngradient 768 B", shape=cylinder, fillcolor="#f3f3f3"];
  f0 -> h0 [style=invis];
  { rank=same; f0; h0; }
  f0 -> f1 [style=invis, weight=20];
  f1 -> h1 [style=invis];
  h0 -> h1 [style=invis, weight=20];
  h1 -> b1 [style=invis];
  b1 -> u1 [style=invis];
  { rank=same; f1; h1; b1; u1; }
  f0 -> h0 [color=red, fontcolor=red, penwidth=2, label="1.0 KiB", tooltip="y1", constraint=false];
  f0 -> f1 [color=black, label="1.0 KiB", tooltip="y1", constraint=false];
  h0 -> f0 [color=red, fontcolor=red, penwidth=2, label="256 B", tooltip="x", constraint=false];
  h0 -> b1 [color=red, fontcolor=red, penwidth=2, label="1.0 KiB", tooltip="y1", constraint=false];
  f1 -> b1 [color=black, label="300 B", tooltip="dy2", constraint=false];
  h1 -> f1 [color=red, fontcolor=red, penwidth=2, label="768 B", tooltip="w2", constraint=false];
  h1 -> u1 [color=blue, fontcolor=blue, label="1.5 KiB", tooltip="w2, dw2", constraint=false];
  b1 -> h1 [color=red, fontcolor=red, penwidth=2, label="768 B", tooltip="dw2", constraint=false];
}
)");
}

TEST_CASE("blocks that follow each other and are alike are one row") {
  const PlanRows rows = plan_rows(plan_of({{"stem.conv", 100},
                                           {"layer1.0.conv", 100},
                                           {"layer1.0.bn", 100},
                                           {"layer1.1.conv", 100},
                                           {"layer1.1.bn", 100},
                                           {"layer1.2.conv", 100},
                                           {"layer1.2.bn", 100},
                                           {"pool"},
                                           {"fc", 100}}),
                                  12);
  CHECK(rows.names == Names{"stem.conv", "layer1 x 3, pool", "fc"});
  CHECK(rows.of_operator == std::vector<int>{0, 1, 1, 1, 1, 1, 1, 1, 2});
}

TEST_CASE("a block that runs elsewhere is a row of its own") {
  const PlanRows rows = plan_rows(plan_of({{"layers.0.mlp", 100},
                                           {"layers.1.mlp", 100},
                                           {"layers.2.mlp", 100, true},
                                           {"layers.3.mlp", 100}}),
                                  12);
  CHECK(rows.names == Names{"layers.0 to layers.1", "layers.2", "layers.3"});
}

TEST_CASE("rows beyond the limit are merged, blocks of one chain first") {
  const Plan plan = plan_of({{"embed", 100},
                             {"layers.0.mlp", 100},
                             {"layers.1.mlp", 100, true},
                             {"layers.2.mlp", 100},
                             {"head", 100},
                             {"last", 100}});
  CHECK(plan_rows(plan, 6).names.size() == 6);
  CHECK(plan_rows(plan, 5).names ==
        Names{"embed", "layers.0 to layers.1", "layers.2", "head", "last"});
  CHECK(plan_rows(plan, 4).names == Names{"embed", "layers x 3", "head", "last"});
  CHECK(plan_rows(plan, 3).names == Names{"embed to layers.2", "head", "last"});
  CHECK(plan_rows(plan, 1).names == Names{"embed to last"});
}

TEST_CASE("small layers without a number join the row before them, four or more by the last one") {
  const PlanRows rows = plan_rows(
      plan_of(
          {{"conv", 1000}, {"relu"}, {"pool"}, {"flatten"}, {"dropout"}, {"fc", 1000}, {"act"}}),
      12);
  CHECK(rows.names == Names{"conv to dropout", "fc, act"});
}

}  // namespace stowage
