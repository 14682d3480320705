#include "estimator/arena/arena_blocks.hpp"

#include "estimator/base/live_sum.hpp"

namespace stowage {

std::vector<Bytes> live_bytes(const ArenaBlocks& blocks) {
  LiveSum sum(blocks.steps);
  for (std::size_t i = 0; i < blocks.count(); ++i) {
    for (const StepRange& range : blocks.live[i]) sum.add(range, Bytes(blocks.size[i]));
  }
  return std::move(sum).by_step();
}

}  // namespace stowage
