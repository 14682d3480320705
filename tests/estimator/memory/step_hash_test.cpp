#include "estimator/memory/step_hash.hpp"

#include <doctest/doctest.h>

#include <memory>

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

}  // namespace
}  // namespace stowage
