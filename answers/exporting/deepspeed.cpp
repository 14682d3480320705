// Keys and defaults: deepspeed/runtime/config.py, zero/config.py, zero/offload_config.py,
// precision_config.py and engine.py (_configure_basic_optimizer) of DeepSpeed 0.19.8.
#include <fmt/format.h>

#include "answers/exporting/engine_files.hpp"
#include "answers/question/question_error.hpp"
#include "estimator/optimizer/optimizer_row.hpp"

namespace stowage {

namespace {

constexpr std::string_view torch_classes = "torch.optim.";

SettingsTree switched(bool on) {
  SettingsTree tree;
  tree.add("enabled", on);
  return tree;
}

bool runs_in(Precision precision, Precision whole, Precision mixed) {
  return precision == whole || precision == mixed;
}

SettingsTree offload_tree(const DataParallel& parallel, bool optimizer) {
  SettingsTree tree;
  tree.add("device", "cpu");
  tree.add("pin_memory", parallel.pinned);
  if (optimizer) tree.add("ratio", 1.0);
  return tree;
}

/// The numbers are DeepSpeed's defaults, which are counted; stated so that no other default of a
/// later version, and no launcher, takes their place.
SettingsTree zero_tree(const EngineStep& step) {
  const DataParallel& parallel = step.parallel();
  SettingsTree tree;
  tree.add("stage", parallel.zero);
  if (parallel.zero == 0) return tree;
  tree.add("contiguous_gradients", true);
  tree.add("overlap_comm", parallel.zero == last_zero_stage);
  tree.add("reduce_bucket_size", 500'000'000);
  if (parallel.zero == last_zero_stage) {
    tree.add("stage3_max_live_parameters", 1'000'000'000);
    tree.add("stage3_param_persistence_threshold", 100'000);
    tree.add("sub_group_size", 1'000'000'000);
  } else {
    tree.add("allgather_bucket_size", 500'000'000);
  }
  if (parallel.offloads_optimizer()) tree.add("offload_optimizer", offload_tree(parallel, true));
  if (parallel.offloads_parameters()) tree.add("offload_param", offload_tree(parallel, false));
  return tree;
}

/// The class by which DeepSpeed makes the optimizer that is counted; empty: it makes none such.
std::string optimizer_class(const OptimizerSettings& settings) {
  const std::string_view source = find_optimizer(settings.name)->source;
  if (!source.starts_with(torch_classes)) return {};
  return std::string(source.substr(torch_classes.size()));
}

bool is_adam(const OptimizerSettings& settings) {
  return settings.name == "adam" || settings.name == "adamw";
}

/// Whose the learning rate is: DeepSpeed's default, or what transformers' Trainer has.
enum class LearningRate : std::uint8_t { defaults, by_trainer };

/// Only the parameters that change the state: the others are the training's own.
SettingsTree optimizer_tree(const EngineStep& step, const std::string& name, LearningRate rate) {
  const OptimizerSettings& settings = step.lowering.optimizer;
  SettingsTree parameters = SettingsTree::Members{};
  if (rate == LearningRate::by_trainer) {
    for (const char* own : {"lr", "weight_decay"}) parameters.add(own, "auto");
    if (is_adam(settings)) {
      for (const char* own : {"betas", "eps"}) parameters.add(own, "auto");
    }
  }
  const bool on_host = step.parallel().offloads_optimizer();
  const OptimizerImplementation implementation = implementation_of(settings);
  if (settings.name == "adam") parameters.add("adam_w_mode", false);
  // Without torch_adam DeepSpeed takes FusedAdam, or its Adam of the CPU.
  if (is_adam(settings) && !on_host && implementation != OptimizerImplementation::fused) {
    parameters.add("torch_adam", true);
    parameters.add("foreach", implementation == OptimizerImplementation::foreach);
  }
  if (!is_adam(settings) && settings.implementation != OptimizerImplementation::usual) {
    parameters.add("foreach", implementation == OptimizerImplementation::foreach);
    parameters.add("fused", implementation == OptimizerImplementation::fused);
  }
  if (settings.momentum > 0) parameters.add("momentum", settings.momentum);
  if (settings.nesterov) parameters.add("nesterov", true);
  if (settings.amsgrad) parameters.add("amsgrad", true);
  if (settings.centered) parameters.add("centered", true);
  SettingsTree tree;
  tree.add("type", name);
  tree.add("params", std::move(parameters));
  return tree;
}

SettingsTree checkpointing_tree() {
  SettingsTree tree;
  tree.add("partition_activations", false);
  tree.add("cpu_checkpointing", false);
  tree.add("contiguous_memory_optimization", false);
  return tree;
}

void add_optimizer(const EngineStep& step, LearningRate rate, SettingsTree& tree) {
  const std::string name = optimizer_class(step.lowering.optimizer);
  if (name.empty()) return;
  tree.add("optimizer", optimizer_tree(step, name, rate));
  if (step.parallel().zero > 0 && !is_adam(step.lowering.optimizer)) {
    tree.add("zero_allow_untested_optimizer", true);
  }
  // The CPU's update of these is torch's own.
  if (step.parallel().offloads_optimizer() && !is_adam(step.lowering.optimizer)) {
    tree.add("zero_force_ds_cpu_optimizer", false);
  }
}

SettingsTree deepspeed_tree(const EngineStep& step, LearningRate rate) {
  using enum Precision;
  SettingsTree tree;
  tree.add("train_micro_batch_size_per_gpu", step.batch);
  tree.add("gradient_accumulation_steps", step.accumulation);
  tree.add("train_batch_size", step.batch * step.accumulation * step.parallel().gpus);
  tree.add("zero_optimization", zero_tree(step));
  tree.add("bf16", switched(runs_in(step.precision, bf16, mixed_bf16)));
  tree.add("fp16", switched(runs_in(step.precision, fp16, mixed_fp16)));
  if (const auto lower = autocast_type(step.precision)) {
    SettingsTree autocast = switched(true);
    autocast.add("dtype", to_string(*lower));
    tree.add("torch_autocast", std::move(autocast));
  }
  if (step.lowering.optimizer.master_weights == MasterWeights::weights_and_gradients) {
    SettingsTree types;
    types.add("grad_accum_dtype", "fp32");
    tree.add("data_types", std::move(types));
  }
  add_optimizer(step, rate, tree);
  if (step.checkpoints_blocks || step.checkpoints_other) {
    tree.add("activation_checkpointing", checkpointing_tree());
  }
  return tree;
}

}  // namespace

std::vector<std::string> deepspeed_uncounted(const EngineStep& step) {
  std::vector<std::string> lines;
  const DataParallel& parallel = step.parallel();
  if (parallel.zero == 0 && has_master_weights(step.precision)) {
    lines.emplace_back(
        "DeepSpeed's flat buffers of 16-bit training without ZeRO: counted is a plain loop with "
        "float32 master weights");
  }
  if (parallel.zero == 0 && parallel.gpus > 1) {
    lines.emplace_back(
        "DeepSpeed's allreduce of gradients: counted are DistributedDataParallel's buckets");
  }
  if (autocast_type(step.precision) && parallel.zero > 0) {
    lines.emplace_back("the 16-bit copies of gradients that torch_autocast communicates");
  }
  if (parallel.zero == last_zero_stage) {
    lines.emplace_back("what stage 3 prefetches beyond stage3_max_live_parameters");
  }
  if (parallel.zero > 0) lines.emplace_back("what DeepSpeed takes before the first step");
  if (parallel.zero > 0 && !parallel.is_parallel()) {
    lines.emplace_back("what NCCL takes for a group of one GPU, which DeepSpeed opens too");
  }
  return lines;
}

SettingsTree deepspeed_tree_of_trainer(const EngineStep& step) {
  return deepspeed_tree(step, LearningRate::by_trainer);
}

Result<EngineFile> deepspeed_file(const EngineStep& step) {
  if (step.parallel().fsdp.on) {
    return failure(
        question_error("`fsdp` is PyTorch's way to shard, and not DeepSpeed's",
                       "`zero` 3 shards parameters too; `to` fsdp writes FSDP's settings"));
  }
  if (step.precision == Precision::fp64) {
    return failure(question_error("`precision` fp64: DeepSpeed trains in fp32, fp16 and bf16"));
  }
  EngineFile file{.body = json_text(deepspeed_tree(step, LearningRate::defaults)),
                  .said = {"batch", "accumulation", "zero", "offload", "precision"},
                  .uncounted = deepspeed_uncounted(step)};
  if (!optimizer_class(step.lowering.optimizer).empty()) {
    file.said.emplace_back("optimizer");
    // On the host DeepSpeed's own Adam has one implementation.
    const bool on_host = step.parallel().offloads_optimizer();
    if (!on_host || !is_adam(step.lowering.optimizer)) {
      file.said.emplace_back("optimizer_implementation");
    }
    file.remarks.emplace_back(
        "learning rate, betas and weight decay change no memory: they are the optimizer's "
        "defaults");
  }
  file.said.emplace_back("master_gradients");
  return file;
}

}  // namespace stowage
