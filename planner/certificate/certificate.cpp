#include "planner/certificate/certificate.hpp"

namespace stowage {

std::optional<std::size_t> end_of_tree(const BranchTree& tree, std::size_t begin) {
  std::size_t open = 1;  // trees that have yet to begin
  for (std::size_t i = begin; i < tree.size(); ++i) {
    open = tree[i].leaf() != nullptr ? open - 1 : open + 1;
    if (open == 0) return i + 1;
  }
  return std::nullopt;
}

}  // namespace stowage
