#include "estimator/step/choose_step.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "estimator/base/cure.hpp"
#include "estimator/base/kernel_set.hpp"
#include "estimator/optimizer/optimizer_row.hpp"

namespace stowage {

namespace {

// DeepSpeed's fp16 and bf16 with ZeRO keep each GPU's share of the parameters in fp32 and update
// that (runtime/zero/stage_1_and_2.py, stage3.py); gradients stay in 16 bits unless data_types.
// grad_accum_dtype says fp32 (get_data_types in runtime/engine.py).
// FSDP's shards are in fp32 themselves.
bool keeps_master_weights(const ModelGraph& model, const StepWishes& wishes) {
  if (wishes.parallel.fsdp.on) return false;
  const bool narrow = model.precision == Precision::fp16 || model.precision == Precision::bf16;
  return has_master_weights(model.precision) || (narrow && wishes.parallel.zero > 0);
}

// What the ways to share a model out do not allow together.
std::optional<Diagnostic> problem_of(const DataParallel& parallel) {
  const auto problem = [](std::string message, std::string hint) {
    return Diagnostic{.message = std::move(message), .hint = std::move(hint)};
  };
  if (parallel.zero > 0 && parallel.fsdp.on) {
    return problem("a model is sharded by ZeRO or by FSDP, not by both",
                   "ZeRO 3 and FSDP share out the same");
  }
  if (parallel.zero > 0 && !parallel.runs_zero()) {
    return problem("ZeRO shares a model out among GPUs: one has nobody to share with",
                   hint_of("offload the optimizer, as a single GPU can", Cure::number_of_gpus));
  }
  if (parallel.offload == Offload::none) return std::nullopt;
  if (parallel.zero == 0 && !parallel.fsdp.on) {
    return problem("offload is ZeRO's and FSDP's: whole replicas stay on their GPUs",
                   "share the model out, or let a plan place it");
  }
  if (parallel.fsdp.on && parallel.offload != Offload::all) {
    return problem("FSDP offloads parameters, gradients and optimizer state together, or nothing",
                   "offload all");
  }
  if (parallel.offloads_parameters() && parallel.zero > 0 && parallel.zero < last_zero_stage) {
    return problem(fmt::format("ZeRO {} keeps whole parameters on each GPU: stage 3 offloads them",
                               parallel.zero),
                   "offload the optimizer alone");
  }
  return std::nullopt;
}

Result<OptimizerSettings> chosen_optimizer(const ModelGraph& model, const StepWishes& wishes) {
  OptimizerSettings settings = model.optimizer;
  if (wishes.optimizer) {
    const auto named = named_optimizer(*wishes.optimizer);
    if (!named) return failure(fmt::format("there is no optimizer '{}'", *wishes.optimizer));
    settings = *named;
  }
  settings.implementation = wishes.implementation.value_or(settings.implementation);
  if (const auto problem = problem_of(settings)) return failure(problem->message, problem->hint);
  const bool keeps_masters = keeps_master_weights(model, wishes);
  if (wishes.master_gradients && wishes.parallel.fsdp.on) {
    return failure("FSDP keeps gradients in the format of its shards",
                   "the format that they are summed in is reduce=fp32 or reduce=bf16");
  }
  if (wishes.master_gradients && !keeps_masters) {
    return failure(
        fmt::format("gradients are kept in fp32 beside {} parameters only under the "
                    "precisions mixed-fp16 and mixed-bf16",
                    to_string(model.precision)));
  }
  if (keeps_masters && model.loss.valid()) {
    settings.master_weights =
        wishes.master_gradients ? MasterWeights::weights_and_gradients : MasterWeights::weights;
  }
  return settings;
}

// What is said of a step that does not update anything.
Diagnostics idle_wishes(const StepWishes& wishes) {
  std::vector<std::string_view> idle;
  if (wishes.optimizer || wishes.implementation) idle.emplace_back("an optimizer");
  if (wishes.accumulation) idle.emplace_back("accumulation");
  if (wishes.master_gradients) idle.emplace_back("master gradients");
  if (wishes.parallel.is_parallel()) idle.emplace_back("several GPUs");
  if (wishes.parallel.fsdp.on) idle.emplace_back("FSDP");
  if (wishes.parallel.offload != Offload::none) idle.emplace_back("offload");
  if (idle.empty()) return {};
  return {{.severity = Severity::warning,
           .message = fmt::format("an inference has no use for {}", fmt::join(idle, " and "))}};
}

// The error for a memory format where the model has no images.
Diagnostics idle_layout(const ModelGraph& model, const StepWishes& wishes) {
  if (wishes.layout != TensorLayout::channels_last) return {};
  const auto is_image = [](const TensorType& type) {
    return type.shape.size() == 4 || type.shape.size() == 5;
  };
  const bool any = std::any_of(model.inputs.begin(), model.inputs.end(),
                               [&](TensorId id) { return is_image(model.tensor(id).type); }) ||
                   std::any_of(model.parameters.begin(), model.parameters.end(),
                               [&](const Parameter& p) { return is_image(p.type); });
  if (any) return {};
  return {{.severity = Severity::warning,
           .message = fmt::format("model '{}' has no image and no filter to lay out as nhwc",
                                  model.name)}};
}

bool is_paged(const OptimizerRow& row) {
  return std::any_of(row.state.begin(), row.state.end(),
                     [](const StateTensor& state) { return state.place == StatePlace::managed; });
}

// Settings that are PyTorch scripts' own ways to save memory. A plan of our executor's has its own.
Result<void> check_memory_settings(const ModelGraph& model, Mode mode, const StepWishes& wishes) {
  const FineTuning& tuning = model.fine_tuning;
  if (mode == Mode::inference) {
    const std::string_view idle = tuning.chunked_loss            ? "a loss in chunks"
                                  : tuning.offload               ? "offloaded activations"
                                  : tuning.optimizer_in_backward ? "an optimizer in backward"
                                                                 : "";
    if (idle.empty()) return {};
    return failure(fmt::format("an inference has no use for {}", idle));
  }
  const OptimizerRow* const row =
      find_optimizer(wishes.optimizer ? *wishes.optimizer : model.optimizer.name);
  const bool sharded = wishes.parallel.zero > 0 || wishes.parallel.fsdp.on;
  if (row != nullptr && sharded && is_paged(*row)) {
    return failure(
        fmt::format("'{}' is predicted for whole parameters, not for shards of them", row->name),
        "its state is in unified memory, which ZeRO and FSDP offload in their own ways");
  }
  const bool library = traits(wishes.kernels).library_optimizer;
  if (!library && (tuning.offload || tuning.optimizer_in_backward)) {
    return failure(
        fmt::format("{} is what a PyTorch script does; the kernel set '{}' runs plans, which move "
                    "tensors and updates themselves",
                    tuning.offload ? "offloading of activations" : "an optimizer in backward",
                    traits(wishes.kernels).name),
        hint_of("leave it to the plan", Cure::pytorch_kernels));
  }
  if (!tuning.optimizer_in_backward) return {};
  if (wishes.accumulation.value_or(model.accumulation) > 1) {
    return failure("an optimizer in backward steps at each micro-batch: it does not accumulate");
  }
  if (wishes.parallel.is_parallel()) {
    return failure("an optimizer in backward is served on one GPU alone");
  }
  if (wishes.parallel.zero > 0) {
    return failure("an optimizer in backward is not served with ZeRO, which has its own update");
  }
  return {};
}

}  // namespace

Result<ChosenStep> choose_step(const ModelGraph& model, const StepWishes& wishes) {
  if (auto problem = problem_of(wishes.parallel)) {
    return tl::unexpected(Diagnostics{*std::move(problem)});
  }
  const bool trainable = model.loss.valid();
  const Mode mode = wishes.mode.value_or(trainable ? Mode::train : Mode::inference);
  if (mode == Mode::train && !trainable) {
    return failure(
        fmt::format("the model '{}' has no loss, so that it cannot be trained", model.name),
        hint_of("give its description a loss", Cure::inference));
  }
  const bool trains_base = mode == Mode::train && model.fine_tuning.base.has_value();
  if (trains_base && !model.fine_tuning.lora && model.fine_tuning.base->trains_adapters) {
    return failure(
        fmt::format("a base in {} is not trained itself", to_string(*model.fine_tuning.base)),
        hint_of(fmt::format("{} r=16,alpha=32,targets=all-linear", in_words(Cure::adapters)),
                Cure::inference));
  }
  if (trains_base && !model.fine_tuning.base->trains_adapters) {
    const bool has_adapters = model.fine_tuning.lora.has_value();
    // Mxfp4Config(dequantize=True) is transformers' way.
    const bool restores = model.fine_tuning.base->packed.kind == PackedKind::fp4_packed;
    return failure(
        fmt::format("transformers trains no {} {}", has_adapters ? "adapters beside" : "base in",
                    to_string(*model.fine_tuning.base)),
        hint_of(
            fmt::format(
                "{}{} nf4{}",
                restores ? "\"dequantize\": true in its quantization_config restores it, or " : "",
                in_words(Cure::quantised_base),
                has_adapters ? std::string()
                             : fmt::format(" and {} r=16,alpha=32,targets=all-linear",
                                           in_words(Cure::adapters))),
            Cure::inference));
  }
  if (auto suits = check_memory_settings(model, mode, wishes); !suits) {
    return tl::unexpected(std::move(suits.error()));
  }
  auto optimizer = chosen_optimizer(model, wishes);
  if (!optimizer) return tl::unexpected(std::move(optimizer.error()));
  ChosenStep chosen{.lowering = {.kernels = wishes.kernels,
                                 .mode = mode,
                                 .optimizer = *std::move(optimizer),
                                 .early_updates = model.fine_tuning.optimizer_in_backward,
                                 .in_place = wishes.in_place,
                                 .step = model.step}};
  chosen.warnings = idle_layout(model, wishes);
  chosen.lowering.step.layout = wishes.layout.value_or(model.step.layout);
  if (traits(wishes.kernels).dispatches_by_card) {
    chosen.lowering.compute_capability = wishes.compute_capability;
    chosen.lowering.efficient_takes_groups = wishes.efficient_takes_groups;
    chosen.lowering.convolutions = wishes.convolutions;
  } else {
    chosen.lowering.convolutions.tf32 = wishes.convolutions.tf32;
  }
  if (mode == Mode::inference) {
    for (Diagnostic& idle : idle_wishes(wishes)) chosen.warnings.push_back(std::move(idle));
    return chosen;
  }
  chosen.lowering.parallel = wishes.parallel;
  chosen.accumulation = wishes.accumulation.value_or(model.accumulation);
  return chosen;
}

}  // namespace stowage
