// Keys: JobConfig of torchtitan 0.2.2 (config/job_config.py), which reads TOML. torchtitan 0.3.0
// reads no file: its options of the same names (config/configs.py) stand in the file's comment.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "answers/exporting/engine_files.hpp"
#include "answers/question/question_error.hpp"
#include "estimator/optimizer/optimizer_row.hpp"

namespace stowage {

namespace {

Result<void> check_torchtitan(const EngineStep& step) {
  using enum Precision;
  if (step.parallel().zero > 0) {
    return failure(question_error("`zero` is DeepSpeed's: torchtitan shards with FSDP",
                                  "`fsdp` is torchtitan's way"));
  }
  const bool fsdp = step.parallel().fsdp.on;
  const Precision precision = step.precision;
  if (fsdp && !step.parallel().fsdp.by_block) {
    return failure(question_error("`fsdp` wrap=root: torchtitan wraps each block"));
  }
  if (precision == fp32 || precision == bf16) return {};
  if (precision == (fsdp ? mixed_bf16 : amp_bf16)) return {};
  return failure(question_error(fmt::format(
      "`precision` {}: torchtitan trains in fp32, bf16 and, {}, in {}", to_string(precision),
      fsdp ? "with `fsdp`" : "without `fsdp`", to_string(fsdp ? mixed_bf16 : amp_bf16))));
}

SettingsTree training_tree(const EngineStep& step) {
  const Precision precision = step.precision;
  SettingsTree tree;
  tree.add("local_batch_size", step.batch);
  tree.add("global_batch_size", step.batch * step.accumulation * step.parallel().gpus);
  if (step.seq > 0) tree.add("seq_len", step.seq);
  tree.add("dtype", precision == Precision::bf16 ? "bfloat16" : "float32");
  tree.add("mixed_precision_param", precision == Precision::fp32 ? "float32" : "bfloat16");
  tree.add("mixed_precision_reduce", "float32");
  tree.add("enable_cpu_offload", step.parallel().offload != Offload::none);
  return tree;
}

SettingsTree parallelism_tree(const DataParallel& parallel) {
  SettingsTree tree;
  tree.add("data_parallel_replicate_degree", parallel.fsdp.on ? 1 : parallel.gpus);
  tree.add("data_parallel_shard_degree", parallel.fsdp.on ? parallel.gpus : 1);
  if (parallel.fsdp.on) {
    tree.add("fsdp_reshard_after_forward",
             parallel.fsdp.reshards_after_forward ? "default" : "never");
  }
  return tree;
}

std::string_view torchtitan_optimizer(const OptimizerSettings& settings) {
  if (settings.amsgrad) return {};
  if (settings.name == "adamw") return "AdamW";
  return settings.name == "adam" ? "Adam" : "";
}

std::vector<std::string> torchtitan_remarks(const EngineStep& step) {
  const FullyShard& fsdp = step.parallel().fsdp;
  std::vector<std::string> lines;
  const auto add_if = [&](bool holds, std::string line) {
    if (holds) lines.push_back(std::move(line));
  };
  add_if(fsdp.reshards_among > 0,
         fmt::format("`fsdp` reshard={}: torchtitan reshards among all GPUs or not at all",
                     fsdp.reshards_among));
  add_if(fsdp.reduce_type && *fsdp.reduce_type != DataType::float32,
         "`fsdp` reduce=: torchtitan reduces in float32");
  add_if(fsdp.output_type.has_value(), "`fsdp` output=: torchtitan has no key for it");
  add_if(fsdp.forward_prefetch > 0, "`fsdp` forward-prefetch=: torchtitan chooses it");
  add_if(fsdp.backward_prefetch > 0, "`fsdp` backward-prefetch=: torchtitan chooses it");
  add_if(!step.parallel().pinned, "`offload` pin=false: torchtitan pins what it offloads");
  lines.emplace_back(
      "the model and its data: keys model.name, model.flavor, training.dataset; torchtitan runs "
      "its "
      "own implementation of the model");
  return lines;
}

/// "training.local_batch_size 4": the options that torchtitan 0.3 has for the tree's members.
void add_flags(const SettingsTree& tree, const std::string& path, std::vector<std::string>& flags) {
  for (const auto& [name, value] : std::get<SettingsTree::Members>(tree.value())) {
    const std::string full = path.empty() ? name : fmt::format("{}.{}", path, name);
    if (std::holds_alternative<SettingsTree::Members>(value.value())) {
      if (name != "activation_checkpoint") add_flags(value, full, flags);
      continue;
    }
    if (full == "optimizer.name" || full == "optimizer.early_step_in_backward") continue;
    const std::string text = plain_value(value);
    const bool is_switch = text == "true" || text == "false";
    const std::size_t dot = full.rfind('.') + 1;
    flags.push_back(is_switch ? fmt::format("-{}{}{}{}", "-", full.substr(0, dot),
                                            text == "true" ? "" : "no_", full.substr(dot))
                              : fmt::format("-{}{} {}", "-", full, text));
  }
}

std::vector<std::string> newer_flags(const EngineStep& step, const SettingsTree& tree) {
  std::vector<std::string> flags;
  add_flags(tree, "", flags);
  flags.emplace_back(step.checkpoints_blocks ? "activation-checkpoint:full"
                                             : "activation-checkpoint:none");
  return flags;
}

}  // namespace

Result<EngineFile> torchtitan_file(const EngineStep& step) {
  if (auto served = check_torchtitan(step); !served) {
    return tl::unexpected(std::move(served.error()));
  }
  SettingsTree tree;
  tree.add("training", training_tree(step));
  tree.add("parallelism", parallelism_tree(step.parallel()));
  SettingsTree checkpoint;
  checkpoint.add("mode", step.checkpoints_blocks ? "full" : "none");
  tree.add("activation_checkpoint", std::move(checkpoint));
  EngineFile file{.said = {"batch", "accumulation", "seq", "precision", "gpus", "fsdp", "offload"},
                  .remarks = torchtitan_remarks(step)};
  if (step.checkpoints_blocks) file.said.emplace_back("checkpoint");
  const OptimizerSettings& settings = step.lowering.optimizer;
  if (const std::string_view name = torchtitan_optimizer(settings); !name.empty()) {
    SettingsTree optimizer;
    optimizer.add("name", name);
    optimizer.add("implementation", to_string(implementation_of(settings)));
    if (step.fine_tuning.optimizer_in_backward) optimizer.add("early_step_in_backward", true);
    tree.add("optimizer", std::move(optimizer));
    file.said.insert(file.said.end(), {"optimizer", "optimizer_implementation"});
    if (step.fine_tuning.optimizer_in_backward) file.said.emplace_back("optimizer_in_backward");
  } else {
    file.remarks.emplace_back("without another registered torchtitan makes AdamW");
  }
  file.uncounted.emplace_back(
      "torchtitan's own groups of the embeddings, and of the last norm with the output: counted is "
      "one group of both");
  file.uncounted.emplace_back(
      "the loss in chunks that models of torchtitan 0.3 set: it takes less than is counted");
  file.head = {"torchtitan 0.2 reads this file; 0.3 takes the same as options:"};
  for (const std::string& flag : newer_flags(step, tree)) file.head.push_back("  " + flag);
  file.body = toml_text(tree);
  return file;
}

}  // namespace stowage
