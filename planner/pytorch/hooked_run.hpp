// A step as PyTorch runs it with a plan's decisions, through the simulated allocator.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "estimator/check/check.hpp"
#include "estimator/memory/sized_step.hpp"
#include "estimator/rewrite/update_on_host.hpp"
#include "planner/pytorch/module_regions.hpp"
#include "planner/pytorch/offload_decisions.hpp"
#include "planner/pytorch/pytorch_plans.hpp"

namespace stowage {

using SharedStep = std::shared_ptr<const StepGraph>;

/// One way of running the step: modules that run again, blocks whose parameters are streamed,
/// micro-batches or parts of an inference, and where and when parameters are updated.
struct HookedCase {
  std::vector<std::string> modules;
  std::vector<StreamedModule> stream;
  std::int64_t micro_batches = 1;
  std::int64_t parts = 1;  ///< of an inference
  UpdateChoice updates;
  SizedStep step;  ///< of one micro-batch, or of all parts
};

/// What hooked_case makes of the step.
struct HookedChanges {
  std::vector<ModuleRegion> modules;  ///< to be checkpointed
  std::size_t streamed = 0;  ///< of streamable_blocks, spread over them; in one micro-batch alone
  std::int64_t micro_batches = 1;
  std::int64_t parts = 1;  ///< of an inference
  UpdateChoice updates;    ///< changed ones in one micro-batch alone
};

/// The step with these changes. Errors: with_checkpoints', with_streamed_parameters',
/// with_inference_parts', with_updates', size_step's; the batch cannot be shared equally.
[[nodiscard]] Result<HookedCase> hooked_case(const PytorchRequest& request,
                                             WorkspaceSource& workspaces,
                                             const HookedChanges& changes);

/// Whether it fits a card with usual_margin() less, since the simulated allocator may be a little
/// low, and comes to ask the driver for nothing. Memory that the allocator has cached may be given
/// back before.
[[nodiscard]] bool fits_safely(const CheckReport& report);

/// check() of the whole step with these stays on the host, with usual_margin() in reserve. Errors:
/// with_saved_on_host's, with_micro_batches', size_step's.
[[nodiscard]] Result<CheckReport> check_hooked(const PytorchRequest& request,
                                               WorkspaceSource& workspaces, const HookedCase& of,
                                               const std::vector<SavedStay>& stays);

}  // namespace stowage
