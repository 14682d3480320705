#include "planner/pytorch/excess_bytes.hpp"

#include <algorithm>

#include "estimator/memory/step_memory.hpp"
#include "estimator/rewrite/streamed_parameters.hpp"

namespace stowage {

Bytes excess_bytes(const SizedStep& step, Bytes available) {
  const MemoryRules rules{.granularity = Bytes(streamed_alignment), .with_workspaces = false};
  const std::vector<Bytes> live = live_bytes(step, rules, storage_touches(*step.graph));
  Bytes most;
  for (const Bytes bytes : live) most = std::max(most, bytes);
  return std::max(most - available, Bytes());
}

}  // namespace stowage
