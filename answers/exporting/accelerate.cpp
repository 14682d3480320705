// Keys: ClusterConfig of accelerate/commands/config/config_args.py, and the options of
// commands/launch.py that it is read into, of accelerate 1.15.0.
#include <fmt/format.h>

#include <utility>

#include "answers/exporting/engine_files.hpp"
#include "answers/exporting/trainer_words.hpp"
#include "answers/question/question_error.hpp"

namespace stowage {

namespace {

constexpr FsdpWords accelerate_fsdp{
    .prefix = "fsdp_", .version = "fsdp_version", .offload = "fsdp_offload_params"};

std::string_view distributed_type(const DataParallel& parallel) {
  if (parallel.fsdp.on) return "FSDP";
  if (parallel.zero > 0) return "DEEPSPEED";
  return parallel.is_parallel() ? "MULTI_GPU" : "NO";
}

SettingsTree zero_keys(const EngineStep& step) {
  const DataParallel& parallel = step.parallel();
  SettingsTree tree;
  tree.add("zero_stage", parallel.zero);
  tree.add("gradient_accumulation_steps", step.accumulation);
  tree.add("offload_optimizer_device", parallel.offloads_optimizer() ? "cpu" : "none");
  tree.add("offload_param_device", parallel.offloads_parameters() ? "cpu" : "none");
  tree.add("zero3_init_flag", parallel.zero == last_zero_stage);
  return tree;
}

void add_zero_lines(const EngineStep& step, EngineFile& file) {
  if (!step.parallel().pinned) {
    file.remarks.emplace_back("`offload` pin=false: only DeepSpeed's own file says pin_memory");
  }
  if (autocast_type(step.precision)) {
    file.remarks.emplace_back(
        "accelerate turns mixed precision under DeepSpeed into 16-bit parameters with master "
        "weights, and not into autocast: `precision` mixed-bf16 counts that");
  }
  for (const std::string& line : deepspeed_uncounted(step)) file.uncounted.push_back(line);
}

}  // namespace

Result<EngineFile> accelerate_file(const EngineStep& step) {
  const DataParallel& parallel = step.parallel();
  const auto precision = trainer_precision(step, "accelerate");
  if (!precision) return tl::unexpected(precision.error());
  const bool zero_in_bf16 =
      parallel.zero > 0 && autocast_type(step.precision) == DataType::bfloat16;
  const bool zero_in_fp16 = parallel.zero > 0 && autocast_type(step.precision) == DataType::float16;
  SettingsTree tree;
  tree.add("compute_environment", "LOCAL_MACHINE");
  tree.add("distributed_type", distributed_type(parallel));
  tree.add("mixed_precision", precision->bf16 || zero_in_bf16   ? "bf16"
                              : precision->fp16 || zero_in_fp16 ? "fp16"
                                                                : "no");
  tree.add("num_machines", 1);
  tree.add("num_processes", parallel.gpus);
  tree.add("machine_rank", 0);
  tree.add("main_training_function", "main");
  tree.add("use_cpu", false);
  EngineFile file{.said = {"gpus"}};
  if (!precision->load_type) file.said.emplace_back("precision");
  if (parallel.fsdp.on) {
    tree.add("fsdp_config", fsdp_tree(step, accelerate_fsdp));
    file.said.insert(file.said.end(), {"fsdp", "offload"});
    if (fsdp_checkpoints(step)) file.said.emplace_back("checkpoint");
    file.remarks = fsdp_remarks(step);
    file.uncounted = fsdp_uncounted(step);
  }
  if (parallel.zero > 0) {
    tree.add("deepspeed_config", zero_keys(step));
    file.said.insert(file.said.end(), {"zero", "offload", "accumulation"});
    add_zero_lines(step, file);
  }
  file.body = yaml_text(tree);
  return file;
}

Result<EngineFile> fsdp_file(const EngineStep& step) {
  if (step.parallel().fsdp.on) return accelerate_file(step);
  return failure(question_error("FSDP is not asked for", "`fsdp` asks for it"));
}

}  // namespace stowage
