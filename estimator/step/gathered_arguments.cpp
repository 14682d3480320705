#include "estimator/step/gathered_arguments.hpp"

#include <algorithm>

namespace stowage {

std::size_t first_gathered(const KernelNode& node) {
  if (node.kernel == Kernel::embedding_forward) return 1;
  for (const auto& [name, value] : node.attributes.entries()) {
    const auto* index = std::get_if<std::int64_t>(&value);
    if (name != gathers_attribute || index == nullptr || *index < 0) continue;
    return std::min(static_cast<std::size_t>(*index), node.reads.size());
  }
  return node.reads.size();
}

}  // namespace stowage
