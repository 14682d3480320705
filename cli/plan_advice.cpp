#include "cli/plan_advice.hpp"

#include "cli/replicas.hpp"
#include "estimator/rewrite/lower_step.hpp"
#include "estimator/runtime/process_overhead.hpp"

namespace stowage {

namespace {

bool can_be_planned(const StepRequest& request, const RequestedStep& requested, KernelSet kernels) {
  const Card& card = requested.card.card;
  const auto chosen = requested_choice(request.wishes, *requested.model, kernels, card);
  if (!chosen) return false;
  const auto graph = lower_step(*requested.model, chosen->lowering);
  if (!graph) return false;
  CheckSettings arena = requested.settings;
  arena.runtime = Runtime::stowage;
  return allocator_limit(*graph, card, arena) > Bytes();
}

}  // namespace

std::optional<std::string> plan_advice(const StepRequest& request, const RequestedStep& requested) {
  const StepDocument& document = requested.document;
  if (!requested.model || document.graph->settings.parallel.is_parallel() ||
      document.accumulation > 1 || replica_count(requested.settings) > 1) {
    return std::nullopt;
  }
  if (can_be_planned(request, requested, KernelSet::stowage)) {
    return advice(
        request.typed, "plan",
        {.drop = {"runtime", "pytorch-version", "tf32", "deterministic", "cudnn-benchmark"}});
  }
  if (can_be_planned(request, requested, KernelSet::pytorch)) {
    return advice(request.typed, "plan", {.set = {{"runtime", "pytorch"}}});
  }
  return std::nullopt;
}

}  // namespace stowage
