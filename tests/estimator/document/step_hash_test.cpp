#include "estimator/document/step_hash.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <vector>

namespace stowage {
namespace {

StepGraph one_copy() {
  StepGraph graph;
  graph.storages = {{.name = "x", .persistence = Persistence::from_host, .bytes = 64},
                    {.name = "y", .bytes = 64}};
  KernelNode node{.name = "copy.forward", .kernel = Kernel::copy};
  node.reads = {{.storage = StorageId{0}}};
  node.writes = {{.storage = StorageId{1}}};
  graph.nodes = {node};
  return graph;
}

std::string hash_of(const StepGraph& graph, Bytes second = 64_B) {
  SizedStep step;
  step.graph = std::make_shared<const StepGraph>(graph);
  step.batch = 1;
  step.storage_bytes = {64_B, second};
  return step_hash(step);
}

TEST_CASE("the step hash tells steps apart by names, classes, bytes, kernels and arguments") {
  const std::string hash = hash_of(one_copy());
  CHECK(hash.size() == 32);
  CHECK(hash == hash_of(one_copy()));
  CHECK(hash != hash_of(one_copy(), 65_B));

  StepGraph changed = one_copy();
  changed.storages[1].name += "z";
  CHECK(hash != hash_of(changed));
  changed = one_copy();
  changed.storages[1].storage_class = StorageClass::gradient;
  CHECK(hash != hash_of(changed));
  changed = one_copy();
  changed.nodes[0].name += ".again";
  CHECK(hash != hash_of(changed));
  changed = one_copy();
  changed.nodes[0].kernel = Kernel::permute;
  CHECK(hash != hash_of(changed));
  changed = one_copy();
  std::swap(changed.nodes[0].reads, changed.nodes[0].writes);
  CHECK(hash != hash_of(changed));
  changed = one_copy();
  changed.nodes[0].temporaries = {StorageId{1}};
  CHECK(hash != hash_of(changed));
}

TEST_CASE("the step hash covers whatever else the executor reads") {
  const std::string hash = hash_of(one_copy());
  const std::vector<std::function<void(StepGraph&)>> changes{
      [](StepGraph& g) { g.nodes[0].attributes.set("axis", std::int64_t{1}); },
      [](StepGraph& g) { g.nodes[0].holds = {StorageId{0}}; },
      [](StepGraph& g) { g.nodes[0].phase = Phase::update; },
      [](StepGraph& g) { g.nodes[0].micro_batch = 1; },
      [](StepGraph& g) { g.nodes[0].flops = 1; },
      [](StepGraph& g) { g.nodes[0].reads[0].type = DataType::float16; },
      [](StepGraph& g) { g.nodes[0].reads[0].shape = {16}; },
      [](StepGraph& g) { g.nodes[0].reads[0].offset = 1; },
      [](StepGraph& g) { g.nodes[0].reads[0].is_view = true; },
      [](StepGraph& g) { g.storages[0].persistence = Persistence::transient; },
      [](StepGraph& g) { g.script_holds.set(StorageId{1}, {.held_to_end = true}); },
      [](StepGraph& g) {
        g.storages[0].bytes = {0, 64};
      },
      [](StepGraph& g) { g.settings.optimizer.learning_rate = 1; },
      [](StepGraph& g) { g.settings.mode = Mode::inference; },
      [](StepGraph& g) { g.losses = {g.nodes[0].writes[0]}; },
      [](StepGraph& g) { g.host_state_bytes = 4; },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    CAPTURE(i);
    StepGraph changed = one_copy();
    changes[i](changed);
    CHECK(hash != hash_of(changed));
  }
}

TEST_CASE("the step hash does not depend on where a layer stands in its source") {
  StepGraph a = one_copy(), b = one_copy();
  a.origins = {{"copy", "net.yaml:3:5"}};
  b.origins = {{"copy", "net.yaml:4:5"}};
  CHECK(hash_of(a) == hash_of(b));
}

}  // namespace
}  // namespace stowage
