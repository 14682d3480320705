#include "estimator/step/written_first.hpp"

#include <fmt/format.h>

#include <vector>

namespace stowage {

std::optional<std::string> read_before_written(const StepGraph& graph) {
  std::vector<bool> written(graph.storages.size(), false);
  for (const KernelNode& node : graph.nodes) {
    for (const TensorView& view : node.reads) {
      const Storage& storage = graph.storage(view.storage);
      if (storage.persistence != Persistence::transient || written[view.storage.index()]) continue;
      if (storage.storage_class == StorageClass::temporary ||
          storage.storage_class == StorageClass::workspace) {
        continue;
      }
      return fmt::format("node '{}' reads '{}' before anything has written it", node.name,
                         storage.name);
    }
    for (const TensorView& view : node.writes) written[view.storage.index()] = true;
  }
  return std::nullopt;
}

}  // namespace stowage
