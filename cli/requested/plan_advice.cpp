#include "cli/requested/plan_advice.hpp"

#include "cli/report/replicas.hpp"
#include "estimator/rewrite/lower_step.hpp"
#include "estimator/runtime/process_overhead.hpp"

namespace stowage {

namespace {

bool leaves_an_arena(const StepGraph& graph, const RequestedStep& requested, const Card& card) {
  CheckSettings arena = requested.settings;
  arena.runtime = Runtime::stowage;
  return allocator_limit(graph, card, arena) > Bytes();
}

bool can_be_planned(const StepRequest& request, const RequestedStep& requested, const Card& card,
                    Runtime runtime) {
  const ModelGraph& model = requested.model->graph;
  const auto chosen = requested_choice(request.wishes, model, runtime, card);
  if (!chosen) return false;
  const auto graph = lower_step(model, chosen->lowering);
  return graph && leaves_an_arena(*graph, requested, card);
}

}  // namespace

std::optional<std::string> plan_advice(const StepRequest& request, const RequestedStep& requested,
                                       const Card& card) {
  const StepDocument& document = requested.document;
  const LoweringSettings& made_for = document.graph->settings;
  if (made_for.parallel.is_parallel() || made_for.parallel.fsdp.on || document.accumulation > 1 ||
      made_for.micro_batches > 1 || replica_count(requested.settings) > 1) {
    return std::nullopt;
  }
  if (!requested.model) {
    if (!leaves_an_arena(*document.graph, requested, card)) return std::nullopt;
    const Runtime made = requested.document.runtime;
    const Runtime planned = planned_in_place_of(request.process.runtime.value_or(made));
    if (planned == made) return advice(request.typed, "plan", {.drop = {"runtime"}});
    return advice(request.typed, "plan", {.set = {{"runtime", std::string(to_string(planned))}}});
  }
  if (can_be_planned(request, requested, card, Runtime::stowage)) {
    return advice(
        request.typed, "plan",
        {.drop = {"runtime", "pytorch-version", "tf32", "deterministic", "cudnn-benchmark"}});
  }
  if (can_be_planned(request, requested, card, Runtime::pytorch)) {
    return advice(request.typed, "plan", {.set = {{"runtime", "pytorch"}}});
  }
  return std::nullopt;
}

}  // namespace stowage
