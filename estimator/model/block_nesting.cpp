#include "estimator/model/block_nesting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace stowage {

namespace {

// Depth-first search with an explicit stack, since a file can have enough blocks to overflow the
// program's.
class NestingSearch {
 public:
  NestingSearch(std::vector<Block>& blocks, Mistakes& mistakes)
      : blocks_(blocks), mistakes_(mistakes), heights_(blocks.size(), unvisited) {}

  void visit(std::size_t root) {
    if (heights_[root] == unvisited) enter(root);
    while (!chain_.empty()) {
      Visit& top = chain_.back();
      const std::vector<LayerEntry>& layers = blocks_[top.block].scope.layers;
      if (top.next_layer == layers.size()) {
        leave();
        continue;
      }
      const LayerEntry& layer = layers[top.next_layer++];
      if (layer.block < 0) continue;
      const auto inner = static_cast<std::size_t>(layer.block);
      if (heights_[inner] == in_progress) report_recursion(inner);
      top.tallest = std::max(top.tallest, heights_[inner]);
      if (heights_[inner] == unvisited) enter(inner);
    }
  }

 private:
  struct Visit {
    std::size_t block;
    std::size_t next_layer = 0;
    int tallest = 0;  // of the blocks within
  };

  void enter(std::size_t block) {
    heights_[block] = in_progress;
    chain_.push_back({block});
  }

  void leave() {
    const Visit done = chain_.back();
    chain_.pop_back();
    Block& block = blocks_[done.block];
    int height = done.tallest + 1;  // instances within one another, this one counted
    if (height > deepest_blocks) {
      mistakes_.error(block.mark, fmt::format("blocks nest deeper than {}", deepest_blocks));
      block.recursive = true;
      height = 0;  // what uses it is not to blame too
    }
    heights_[done.block] = height;
    if (!chain_.empty()) chain_.back().tallest = std::max(chain_.back().tallest, height);
  }

  void report_recursion(std::size_t inner) {
    const auto begin = std::find_if(chain_.begin(), chain_.end(),
                                    [&](const Visit& visit) { return visit.block == inner; });
    std::string text;
    for (auto i = begin; i != chain_.end(); ++i) text += blocks_[i->block].name + " -> ";
    Block& block = blocks_[inner];
    block.recursive = true;
    mistakes_.error(block.mark, fmt::format("blocks contain themselves: {}{}", text, block.name));
  }

  static constexpr int unvisited = -1;
  static constexpr int in_progress = -2;

  std::vector<Block>& blocks_;
  Mistakes& mistakes_;
  std::vector<int> heights_;
  std::vector<Visit> chain_;
};

}  // namespace

void refuse_recursion(std::vector<Block>& blocks, Mistakes& mistakes) {
  NestingSearch search(blocks, mistakes);
  for (std::size_t i = 0; i < blocks.size(); ++i) search.visit(i);
}

}  // namespace stowage
