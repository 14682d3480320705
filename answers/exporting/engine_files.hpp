// The writers of other programs' configurations, a source each: a step, or a served model, as the
// text of a file.
//
// Every key was read in the program's own source, of the version that docs/engines.md names.
// tests/engines/check_exports.py has the files read by the programs' own classes.
#pragma once

#include <optional>

#include "answers/exporting/engine_step.hpp"
#include "answers/sizing/serving.hpp"
#include "answers/sizing/verdict.hpp"
#include "estimator/base/diagnostic.hpp"

namespace stowage {

/// DeepSpeed's ds_config, JSON. Errors: FSDP; fp64.
[[nodiscard]] Result<EngineFile> deepspeed_file(const EngineStep& step);
/// The same as a tree, for programs on transformers' Trainer that hold it in a file of their own:
/// "auto" stands for the learning rate and its like, which the Trainer fills in from its own.
[[nodiscard]] SettingsTree deepspeed_tree_of_trainer(const EngineStep& step);
[[nodiscard]] std::vector<std::string> deepspeed_uncounted(const EngineStep& step);

/// The file of `accelerate launch`, YAML. Errors: a precision that accelerate does not make.
[[nodiscard]] Result<EngineFile> accelerate_file(const EngineStep& step);
/// The same of a step with FSDP. Errors: also that there is none.
[[nodiscard]] Result<EngineFile> fsdp_file(const EngineStep& step);

/// `trl sft`'s file, YAML. Errors: a precision that the Trainer does not make.
[[nodiscard]] Result<EngineFile> trl_file(const EngineStep& step);
/// axolotl's file, YAML. Errors: as above; FSDP of the root alone.
[[nodiscard]] Result<EngineFile> axolotl_file(const EngineStep& step);

/// torchtitan's job, TOML. Errors: ZeRO, precisions that torchtitan does not have.
[[nodiscard]] Result<EngineFile> torchtitan_file(const EngineStep& step);
/// Megatron-LM's options, for a shell. Errors: FSDP, a precision without master weights.
[[nodiscard]] Result<EngineFile> megatron_file(const EngineStep& step);

/// llama.cpp's options, for a shell, with what of the model has room on the GPU.
struct PlacedModel {
  EngineFile file;
  Verdict verdict;          ///< of what stays on the GPU
  std::int64_t layers = 0;  ///< repeated blocks
  std::int64_t layers_on_gpu = 0;
  std::int64_t layers_with_experts_on_host = 0;
};
/// Errors: an encoder-decoder; a cache that llama.cpp does not have; a model without blocks.
[[nodiscard]] Result<PlacedModel> llama_cpp_file(const ServingAnswer& sizes,
                                                 const StepQuestion& question);

}  // namespace stowage
