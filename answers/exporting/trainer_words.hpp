// Words of transformers' Trainer, which TRL, axolotl and accelerate share: optimizers, precisions,
// FSDP's settings, adapters and quantised bases.
//
// Read in transformers 5.24.0 (training_args.py, trainer_optimizer.py), accelerate 1.15.0
// (utils/dataclasses.py, utils/fsdp_utils.py).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "answers/exporting/engine_step.hpp"
#include "estimator/base/diagnostic.hpp"

namespace stowage {

struct TrainerOptimizer {
  std::string name;          ///< of OptimizerNames: "adamw_torch"
  std::string arguments;     ///< optim_args: "momentum=0.9"; empty: none
  bool says_variant = true;  ///< the name says the optimizer's implementation too
};
/// nullopt: the Trainer makes no such optimizer.
[[nodiscard]] std::optional<TrainerOptimizer> trainer_optimizer(const EngineStep& step);

struct TrainerPrecision {
  bool bf16 = false, fp16 = false;         ///< mixed precision
  std::optional<DataType> load_type = {};  ///< the format that the model is loaded in; none: fp32
};
/// Errors: a precision that no setting of the Trainer makes.
[[nodiscard]] Result<TrainerPrecision> trainer_precision(const EngineStep& step,
                                                         std::string_view program);

/// How FSDP's settings are spelled.
struct FsdpWords {
  std::string_view prefix, version, offload;
};

/// accelerate's FSDP2, with its names' prefix ("fsdp_", "").
[[nodiscard]] SettingsTree fsdp_tree(const EngineStep& step, const FsdpWords& words);
/// Whether those settings say the step's checkpoints.
[[nodiscard]] bool fsdp_checkpoints(const EngineStep& step);
/// The Trainer's gradient_checkpointing, which is off where FSDP's own key says it. Whether either
/// says the step's checkpoints.
[[nodiscard]] bool add_checkpoints_of_trainer(const EngineStep& step, SettingsTree& tree);
/// What of FSDP's settings accelerate has no word for.
[[nodiscard]] std::vector<std::string> fsdp_remarks(const EngineStep& step);
/// What accelerate's FSDP does otherwise than is counted.
[[nodiscard]] std::vector<std::string> fsdp_uncounted(const EngineStep& step);

/// Settings of offloaded activations that are not TRL's usual ones, which no key says.
[[nodiscard]] std::vector<std::string> offload_remarks(const OffloadSettings& asked,
                                                       std::string_view program);

/// Settings of adapters that are said apart from rank, alpha, dropout, targets and modules_to_save.
[[nodiscard]] std::vector<std::string> lora_remarks(const LoraSettings& lora,
                                                    std::string_view program);

}  // namespace stowage
