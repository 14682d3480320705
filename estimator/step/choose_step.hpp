// choose_step: the settings of a step, from the description's `train:` and the wishes of its user,
// which replace what the description says.
//
// A wish replaces one setting: another optimizer comes with its usual settings, and everything else
// stays as described.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/model_graph.hpp"
#include "estimator/step/lowering_settings.hpp"

namespace stowage {

/// What the user asks for; what is absent is left to the description. The precision is not among
/// these, since a model's types are inferred in it (ModelOptions).
struct StepWishes {
  std::optional<Mode> mode;              ///< else training, where the model has a loss
  std::optional<std::string> optimizer;  ///< a name that named_optimizer knows
  std::optional<OptimizerImplementation> implementation;
  std::optional<std::int64_t> accumulation;  ///< micro-batches before an update, at least 1
  DataParallel parallel = {};
  std::optional<TensorLayout> layout = {};
  bool master_gradients = false;  ///< with master weights: gradients are added up in fp32 too
  KernelSet kernels = KernelSet::pytorch;
  bool in_place = false;                  ///< as the runtime does (works_in_place)
  double compute_capability = 8.6;        ///< of the card; only PyTorch's lowering depends on it
  bool efficient_takes_groups = true;     ///< see LoweringSettings
  ConvolutionSettings convolutions = {};  ///< only PyTorch's runtime has them, but for tf32
};

struct ChosenStep {
  LoweringSettings lowering;      ///< of one micro-batch
  std::int64_t accumulation = 1;  ///< micro-batches before an update; 1 in an inference
  Diagnostics warnings;           ///< wishes that have no effect in this step
};

/// Errors: training a model without a loss; master gradients in a precision without master weights;
/// an implementation that the optimizer does not have; a stage of ZeRO on one GPU
/// that offloads nothing.
[[nodiscard]] Result<ChosenStep> choose_step(const ModelGraph& model, const StepWishes& wishes);

}  // namespace stowage
