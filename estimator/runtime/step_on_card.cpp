#include "estimator/runtime/runtime_run.hpp"
#include "estimator/runtime/sum_workspaces.hpp"

namespace stowage {

StepOnCard::StepOnCard(const SizedStep& sized, const Card& on, const CheckSettings& with)
    : step(with_sum_workspaces(sized, on)),
      card(on),
      settings(with),
      limit(allocator_limit(*sized.graph, on, with)),
      touches(storage_touches(*sized.graph)),
      buffers(runtime_buffers(*sized.graph, on, with)) {}

}  // namespace stowage
