// A plan for PyTorch as another program runs its step: what the plan was made of is asked for
// again, with those of its decisions that the program has keys for, so that it can be sized.
//
//   checkpointed modules   all blocks run again, since no program takes a list of them
//   updates on the CPU     DeepSpeed's ZeRO 2 with the optimizer offloaded; FSDP's offload;
//   Megatron's micro-batches          gradients accumulate saved tensors          TRL and axolotl
//   keep all of a description's on the host; nobody some
#pragma once

#include "answers/exporting/export.hpp"
#include "answers/exporting/planned_step.hpp"
#include "estimator/base/diagnostic.hpp"

namespace stowage {

/// Whether plans for PyTorch are exported to the form.
[[nodiscard]] bool takes_pytorch_plans(const ExportFormRow& row);

/// The step of `question.plan`. Errors: set_up_check's of what the plan was made of; that is
/// another step by now; FSDP of a step's file.
[[nodiscard]] Result<PlannedStep> set_up_hooked_step(const ExportQuestion& question);

}  // namespace stowage
