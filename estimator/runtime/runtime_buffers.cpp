#include "estimator/runtime/runtime_buffers.hpp"

#include "estimator/runtime/runtime_process.hpp"

namespace stowage {

std::vector<RuntimeBuffer> runtime_buffers(const StepGraph& graph, const Card& card,
                                           const CheckSettings& settings) {
  std::vector<RuntimeBuffer> buffers = settings.resident;
  const RuntimeProcess& process = process_of(settings.runtime);
  if (process.buffers == nullptr) return buffers;
  const std::vector<RuntimeBuffer> own = process.buffers(graph, card, settings);
  buffers.insert(buffers.end(), own.begin(), own.end());
  return buffers;
}

}  // namespace stowage
