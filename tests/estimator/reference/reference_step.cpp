#include "tests/estimator/reference/reference_step.hpp"

#include <algorithm>
#include <stdexcept>

#include "estimator/rewrite/lower_step.hpp"

namespace stowage::reference {

ModelGraph traced_model(const ReferenceModel& reference) {
  ModelOptions options = reference.options;
  if (reference.variant == "checkpoint-blocks") options.arguments["checkpoint"] = "true";
  ModelGraph model = our_model(reference.model, options);
  model.loss_in_model = true;
  return model;
}

LoweringSettings settings_of(const ReferenceModel& reference, const std::string& optimizer) {
  LoweringSettings settings{.kernels = KernelSet::pytorch, .optimizer = {.name = optimizer}};
  if (optimizer == "sgd-momentum") settings.optimizer = {.name = "sgd", .momentum = 0.9};
  settings.step.layout = reference.layout;
  settings.early_updates = reference.options.fine_tuning.optimizer_in_backward.has_value();
  if (reference.variant == "accumulate-2") settings.micro_batches = 2;
  if (reference.variant == "zero-grad-to-zero") settings.step.zero_grad = ZeroGrad::to_zero;
  if (reference.variant == "for-loop") {
    settings.optimizer.implementation = OptimizerImplementation::for_loop;
  }
  if (reference.variant == "fused") {
    settings.optimizer.implementation = OptimizerImplementation::fused;
  }
  return settings;
}

SizedStep traced_step(const ModelGraph& model, const ReferenceModel& reference,
                      const std::string& optimizer) {
  auto graph = lower_step(model, settings_of(reference, optimizer));
  if (!graph) throw std::runtime_error(render(graph.error()));
  auto sized = size_storages(std::make_shared<const StepGraph>(*std::move(graph)), reference.batch);
  if (!sized) throw std::runtime_error(render(sized.error()));
  return *std::move(sized);
}

Bytes held_besides(const ReferenceModel& reference) {
  // transformers' output holds the loss, beside the script's variable that has a micro-batch's
  // share of it.
  return reference.model == "gpt2" && reference.variant == "accumulate-2" ? Bytes(4) : Bytes();
}

std::int64_t phase_peak(const SizedStep& step, const std::vector<Bytes>& live,
                        const std::string& phase) {
  std::int64_t top = 0;
  for (std::size_t i = 0; i < live.size(); ++i) {
    const Phase at = step.graph->nodes[i].phase;
    const bool in_phase = phase == "optimizer"  ? at == Phase::update
                          : phase == "backward" ? at == Phase::backward
                                                : at == Phase::forward || at == Phase::loss;
    if (in_phase) top = std::max(top, live[i].count());
  }
  return top;
}

}  // namespace stowage::reference
