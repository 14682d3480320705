#include "estimator/runtime/runtime_run.hpp"

namespace stowage {

StepOnCard::StepOnCard(const SizedStep& sized, const Card& on, const CheckSettings& with)
    : step(sized),
      card(on),
      settings(with),
      limit(allocator_limit(*sized.graph, on, with)),
      touches(storage_touches(*sized.graph)),
      buffers(runtime_buffers(*sized.graph, on, with)) {}

}  // namespace stowage
