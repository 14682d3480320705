// Options: megatron/training/arguments.py of Megatron-LM; of these recompute_*, bf16 and fp16 are
// fields of TransformerConfig, optimizer and *offload* of OptimizerConfig,
// use_distributed_optimizer, data_parallel_sharding_strategy and use_megatron_fsdp of
// DistributedDataParallelConfig of megatron-core 0.16.1.
#include <fmt/format.h>

#include <utility>

#include "answers/exporting/engine_files.hpp"
#include "answers/exporting/flag_list.hpp"
#include "answers/question/question_error.hpp"

namespace stowage {

namespace {

Result<void> check_megatron(const EngineStep& step) {
  using enum Precision;
  const DataParallel& parallel = step.parallel();
  if (parallel.fsdp.on) {
    return failure(question_error("`fsdp` is PyTorch's way to shard, and Megatron has its own",
                                  "`zero` 3 is exported as Megatron's FSDP"));
  }
  const Precision precision = step.precision;
  const bool takes = precision == fp32 || precision == mixed_bf16 || precision == mixed_fp16 ||
                     (parallel.zero > 0 && (precision == bf16 || precision == fp16));
  if (takes) return {};
  return failure(question_error(
      fmt::format("`precision` {}: Megatron's bf16 and fp16 keep float32 master weights",
                  to_string(precision)),
      "`precision` mixed-bf16 or mixed-fp16 counts them"));
}

void add_sharding(const EngineStep& step, FlagList& flags, EngineFile& file) {
  const DataParallel& parallel = step.parallel();
  if (parallel.zero == 0) return;
  file.said.emplace_back("zero");
  flags.add("use-distributed-optimizer");
  if (parallel.zero > 1) {
    flags.add("use-megatron-fsdp");
    flags.add("data-parallel-sharding-strategy",
              parallel.zero == last_zero_stage ? "optim_grads_params" : "optim_grads");
  }
  file.uncounted.emplace_back(
      "Megatron's buffers of sharded gradients and parameters: counted are those of DeepSpeed's "
      "ZeRO of the same stage");
  if (parallel.offload == Offload::none) return;
  if (parallel.offloads_optimizer()) {
    flags.add("optimizer-cpu-offload");
    flags.add("use-precision-aware-optimizer");  // Megatron refuses the one without the other
    flags.add("optimizer-offload-fraction", "1.0");
    if (!parallel.pinned) {
      flags.add("no-pin-cpu-grads");
      flags.add("no-pin-cpu-params");
    }
  }
  if (!parallel.offloads_parameters()) {
    file.said.emplace_back("offload");
    return;
  }
  file.remarks.emplace_back("`offload` of parameters: Megatron has no such setting");
}

std::string_view megatron_optimizer(const OptimizerSettings& settings) {
  if (settings.amsgrad || settings.nesterov) return {};
  if (settings.name == "adamw" || settings.name == "adam") return "adam";
  return settings.name == "sgd" && settings.momentum > 0 ? "sgd" : "";
}

void add_optimizer(const EngineStep& step, FlagList& flags, EngineFile& file) {
  const OptimizerSettings& settings = step.lowering.optimizer;
  const std::string_view name = megatron_optimizer(settings);
  if (name.empty()) return;
  flags.add("optimizer", name);
  if (name == "sgd") flags.add("sgd-momentum", fmt::format("{}", settings.momentum));
  file.said.emplace_back("optimizer");
  if (settings.name == "adam") {
    file.remarks.emplace_back("Megatron's adam decouples weight decay, as AdamW does: same memory");
  }
  file.uncounted.emplace_back(
      "Apex's or TransformerEngine's fused optimizers, which make no temporaries: counted are "
      "PyTorch's");
}

}  // namespace

Result<EngineFile> megatron_file(const EngineStep& step) {
  if (auto served = check_megatron(step); !served) {
    return tl::unexpected(std::move(served.error()));
  }
  EngineFile file{.said = {"batch", "accumulation", "precision"}};
  FlagList flags("MEGATRON_ARGS");
  flags.add("micro-batch-size", step.batch);
  flags.add("global-batch-size", step.batch * step.accumulation * step.parallel().gpus);
  if (step.seq > 0) {
    flags.add("seq-length", step.seq);
    file.said.emplace_back("seq");
  }
  const DataType type = float_type(step.precision);
  if (type == DataType::bfloat16) flags.add("bf16");
  if (type == DataType::float16) flags.add("fp16");
  if (step.checkpoints_blocks) {
    flags.add("recompute-granularity", "full");
    flags.add("recompute-method", "uniform");
    flags.add("recompute-num-layers", 1);
    file.said.emplace_back("checkpoint");
  }
  if (step.lowering.optimizer.master_weights == MasterWeights::weights_and_gradients) {
    flags.add("accumulate-allreduce-grads-in-fp32");
    file.said.emplace_back("master_gradients");
  } else if (type != DataType::float32) {
    file.remarks.emplace_back(
        "Megatron turns on accumulate-allreduce-grads-in-fp32 by itself with bf16: "
        "`master_gradients` counts float32 gradients");
  }
  add_optimizer(step, flags, file);
  add_sharding(step, flags, file);
  file.remarks.emplace_back(
      "the model's sizes, its data and parallelism within a layer (tensor, pipeline, context) are "
      "options of their own: the script says them");
  file.uncounted.emplace_back(
      "Megatron's own kernels (TransformerEngine, fused softmax and loss) and its vocabulary "
      "padded "
      "to a multiple of 128: counted is the model as eager PyTorch runs it");
  file.body = flags.text();
  return file;
}

}  // namespace stowage
