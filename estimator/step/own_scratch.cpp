#include "estimator/step/own_scratch.hpp"

#include <algorithm>

#include "estimator/base/kernel_set.hpp"

namespace stowage {

bool belongs_to_one_node(const StepGraph& graph, StorageId id) {
  const StorageClass storage_class = graph.storage(id).storage_class;
  return storage_class == StorageClass::temporary ||
         (storage_class == StorageClass::workspace && !graph.kernel_set().shares_scratch);
}

void list_own_scratch(const StepGraph& graph, KernelNode& node) {
  const auto list = [&](const std::vector<TensorView>& views) {
    for (const TensorView& view : views) {
      if (!view.storage.valid() || !belongs_to_one_node(graph, view.storage)) continue;
      if (std::ranges::find(node.temporaries, view.storage) != node.temporaries.end()) continue;
      node.temporaries.push_back(view.storage);
    }
  };
  list(node.reads);
  list(node.writes);
}

}  // namespace stowage
