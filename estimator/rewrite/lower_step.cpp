#include "estimator/rewrite/lower_step.hpp"

#include <algorithm>

#include "estimator/model/operator_row.hpp"
#include "estimator/rewrite/attention_variables.hpp"
#include "estimator/rewrite/cast_output.hpp"
#include "estimator/rewrite/checkpoints.hpp"
#include "estimator/rewrite/early_updates.hpp"
#include "estimator/rewrite/fully_sharded.hpp"
#include "estimator/rewrite/micro_batches.hpp"
#include "estimator/rewrite/module_inputs.hpp"
#include "estimator/rewrite/node_order.hpp"
#include "estimator/rewrite/offload_activations.hpp"
#include "estimator/rewrite/recompute.hpp"
#include "estimator/rewrite/results_in_place.hpp"
#include "estimator/step/lower.hpp"

namespace stowage {

namespace {

std::vector<CheckpointRegion> checkpoint_regions(const ModelGraph& model) {
  std::vector<CheckpointRegion> regions;
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    const int region = model.operators[i].region;
    if (region < 0) continue;
    const auto at = static_cast<std::size_t>(region);
    if (at >= regions.size()) regions.resize(at + 1);
    regions[at].operators.push_back(OperatorId::of(i));
    if (model.operators[i].keeps_result) regions[at].kept.push_back(OperatorId::of(i));
  }
  return regions;
}

/// The layer whose result the loss reads, possibly through operators without parameters.
OperatorId head_of(const ModelGraph& model, const Operator& loss) {
  TensorId tensor = loss.inputs.front();
  while (model.tensor(tensor).producer.valid()) {
    const OperatorId producer = model.tensor(tensor).producer;
    const Operator& op = model.op(producer);
    if (!op.parameters.empty()) return producer;
    if (op.inputs.empty()) break;
    tensor = op.inputs.front();
  }
  return {};
}

/// A server with a paged cache runs its own layers (serving/cached_model.hpp), which are not
/// PyTorch's eager modules.
bool is_served_in_blocks(const ModelGraph& model) {
  return std::ranges::any_of(model.operators,
                             [](const Operator& op) { return op.row->name == "paged_cache"; });
}

/// The hooks are off for output layers. A script with chunked logits computes the loss outside the
/// hooks.
OffloadedPart offloaded_part(const ModelGraph& model) {
  OffloadedPart part{.regions = checkpoint_regions(model)};
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    const Operator& op = model.operators[i];
    if (!op.row->is_loss) continue;
    if (model.releases_output) part.unhooked.push_back(OperatorId::of(i));
    if (op.row == &total_loss_row()) continue;
    if (const OperatorId head = head_of(model, op); head.valid()) part.unhooked.push_back(head);
  }
  return part;
}

}  // namespace

/// A cast output is an operator of the model, so it is added first. Then the step of one
/// micro-batch is lowered without the rewrites, and each rewrite that the settings ask for is
/// applied, in the order that their headers demand.
Result<StepGraph> lower_step(const ModelGraph& model, const LoweringSettings& settings) {
  const FullyShard& fsdp = settings.parallel.fsdp;
  if (fsdp.on && fsdp.output_type && settings.mode == Mode::train) {
    LoweringSettings rest = settings;
    rest.parallel.fsdp.output_type.reset();
    return with_cast_output(model, *fsdp.output_type)
        .and_then([&](const ModelGraph& cast) { return lower_step(cast, rest); })
        .map([&](StepGraph&& step) {
          step.settings.parallel = settings.parallel;
          return std::move(step);
        });
  }
  LoweringSettings one = settings;
  one.micro_batches = 1;
  // Hooks of PyTorch's have an optimizer for each parameter, whose calls are lowered one by one.
  one.early_updates = settings.early_updates && traits(settings.kernels).library_optimizer;
  one.in_place = false;
  one.recomputed.clear();
  one.order.clear();
  return lower(model, one)
      .map([&](StepGraph&& step) {
        if (is_served_in_blocks(model)) return std::move(step);
        return with_attention_variables(with_module_inputs(std::move(step), model), model);
      })
      .and_then([&](StepGraph&& step) {
        step.settings.early_updates = false;
        return with_checkpoints(std::move(step), checkpoint_regions(model));
      })
      .and_then([&](StepGraph&& step) -> Result<StepGraph> {
        if (!model.fine_tuning.offload || settings.mode != Mode::train) return std::move(step);
        return with_offloaded_activations(std::move(step), offloaded_part(model),
                                          *model.fine_tuning.offload);
      })
      .and_then([&](StepGraph&& step) -> Result<StepGraph> {
        if (!settings.in_place) return std::move(step);
        return with_results_in_place(std::move(step));
      })
      .and_then([&](StepGraph&& step) { return with_full_sharding(std::move(step), model); })
      .and_then([&](StepGraph&& step) {
        return with_micro_batches(std::move(step), settings.micro_batches);
      })
      .and_then([&](StepGraph&& step) {
        return with_recomputation(std::move(step), settings.recomputed);
      })
      .and_then([&](StepGraph&& step) -> Result<StepGraph> {
        if (!settings.early_updates) return std::move(step);
        return with_early_updates(std::move(step));
      })
      .and_then([&](StepGraph&& step) { return with_order(std::move(step), settings.order); });
}

}  // namespace stowage
