// A plan for PyTorch ("stowage-pytorch-plan", JSON), as far as a configuration of another program
// can say it: the batch, the precision, the optimizer; and how many decisions it cannot.
//
// Such a plan names its step by a hash and holds no model, so that nothing is sized here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "answers/exporting/engine_step.hpp"
#include "estimator/base/diagnostic.hpp"

namespace stowage {

struct PyTorchPlan {
  std::string model;
  std::string gpu;         ///< the card's name; empty: none
  std::int64_t batch = 1;  ///< of the whole step
  std::int64_t micro_batches = 1;
  Precision precision = Precision::fp32;
  OptimizerSettings optimizer;
  std::int64_t offloaded = 0;             ///< storages that leave the GPU
  std::vector<std::string> checkpointed;  ///< modules
  bool updates_on_cpu = false;
};

/// Whether a text is such a plan, by its first member alone.
[[nodiscard]] bool is_pytorch_plan(std::string_view text);

/// Errors, with their place: not JSON, another version, a member that is missing, of another type
/// or out of range, an unknown precision or optimizer, micro-batches of different sizes.
[[nodiscard]] Result<PyTorchPlan> read_pytorch_plan(SourceTextPtr source);

/// The step as a configuration says it: a micro-batch, accumulated.
[[nodiscard]] EngineStep engine_step(const PyTorchPlan& plan);

/// What of the plan a configuration cannot say, a line each.
[[nodiscard]] std::vector<std::string> unexpressed_decisions(const PyTorchPlan& plan);

}  // namespace stowage
