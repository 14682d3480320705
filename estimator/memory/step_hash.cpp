#include "estimator/memory/step_hash.hpp"

#include <fmt/format.h>

#include <iterator>
#include <vector>

#include "estimator/base/hash.hpp"

namespace stowage {

namespace {

void append(std::string& text, const char* role, const std::vector<TensorView>& views) {
  for (const TensorView& view : views) {
    fmt::format_to(std::back_inserter(text), " {} {}", role, view.storage.value);
  }
}

}  // namespace

std::string step_hash(const SizedStep& step) {
  std::string text = fmt::format("micro-batch {}\n", step.batch);
  for (std::size_t i = 0; i < step.graph->storages.size(); ++i) {
    const Storage& storage = step.graph->storages[i];
    fmt::format_to(std::back_inserter(text), "storage {} {} {}\n", storage.name,
                   to_string(storage.storage_class), step.storage_bytes[i].count());
  }
  for (const KernelNode& node : step.graph->nodes) {
    fmt::format_to(std::back_inserter(text), "node {} {}", node.name, to_string(node.kernel));
    append(text, "reads", node.reads);
    append(text, "writes", node.writes);
    for (const StorageId temporary : node.temporaries) {
      fmt::format_to(std::back_inserter(text), " temporary {}", temporary.value);
    }
    text += '\n';
  }
  return hash_text(text);
}

}  // namespace stowage
