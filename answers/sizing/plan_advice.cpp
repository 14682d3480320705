#include "answers/sizing/plan_advice.hpp"

#include "answers/subject/replicas.hpp"
#include "estimator/rewrite/lower_step.hpp"
#include "estimator/runtime/process_overhead.hpp"

namespace stowage {

namespace {

bool leaves_an_arena(const StepGraph& graph, const StepSetup& setup) {
  CheckSettings arena = setup.step.settings;
  arena.runtime = executed_runtime;
  return allocator_limit(graph, setup.card.card, arena) > Bytes();
}

bool can_be_planned(const StepQuestion& question, const StepSetup& setup, Runtime runtime) {
  const ModelGraph& model = setup.step.model->graph;
  const auto chosen = choose_kernels(question.wishes, model, runtime, setup.card.card);
  if (!chosen) return false;
  const auto graph = lower_step(model, chosen->lowering);
  return graph && leaves_an_arena(*graph, setup);
}

/// Whether planning is for steps of other kinds: of several GPUs or replicas, or in micro-batches.
bool is_never_planned(const AskedStep& step) {
  const LoweringSettings& made_for = step.document.graph->settings;
  return made_for.parallel.is_parallel() || made_for.parallel.runs_zero() ||
         made_for.parallel.fsdp.on || step.document.accumulation > 1 ||
         made_for.micro_batches > 1 || replica_count(step.settings) > 1;
}

}  // namespace

std::optional<PlanAdvice> plan_advice(const StepQuestion& question, const StepSetup& setup) {
  const AskedStep& step = setup.step;
  if (is_never_planned(step)) return std::nullopt;
  if (!step.model) {
    if (!leaves_an_arena(*step.document.graph, setup)) return std::nullopt;
    const Runtime made = step.document.runtime;
    const Runtime planned = planned_in_place_of(question.process.runtime.value_or(made));
    return PlanAdvice{.runtime = planned, .is_usual = planned == made};
  }
  if (can_be_planned(question, setup, executed_runtime)) {
    return PlanAdvice{.drops_pytorch_settings = true};
  }
  if (can_be_planned(question, setup, default_runtime)) {
    return PlanAdvice{.runtime = default_runtime, .is_usual = false};
  }
  return std::nullopt;
}

}  // namespace stowage
