// make_pytorch_plans: decisions with which eager PyTorch keeps a step within a card.
//
//   as-is               everything fits: nothing is to be done
//   offload             saved tensors lie in pinned host memory between forward and backward
//   checkpoint-K-of-N   regions (region_choice.hpp) run again in backward; what is left over, their
//                       inputs too, is offloaded
//   checkpoint-nested   regions of which some lie in others, where all regions do not fit alone
//   micro-batch-K       the batch in K parts, whose gradients the script's loop adds up; with
//                       -checkpoint: and all modules run again
//   early-update        each parameter is updated as soon as its gradient is whole; with -offload
//   and
//                       -checkpoint-K-of-N as above
//   cpu-optimizer       updates and the optimizer's state on the CPU, -K-of-N: of K of the N
//                       parameters; with -offload and -checkpoint as above. Early where they can be
//   stream-K-of-N       the parameters of K blocks that get no gradient lie in pinned host memory,
//                       and are on the GPU while their block runs: of an inference, or of a step
//                       with a frozen base; with checkpoint-all- and -offload as above
//   chunk-K             an inference's batch in K parts, whose outputs are put together; and with
//                       blocks streamed, as above
//   NAME-expandable     the same with expandable segments of PyTorch's allocator, where the best of
//                       the others moves clearly more than its bound, or where none of them fits
//
// What is offloaded is found on the cut: with everything but saved tensors kept on the GPU, the
// same problem, the same bounds. Then the step is rewritten as the hooks will run it, and PyTorch's
// allocator is simulated on it; where that does not fit the card, the cut is made again with less
// memory.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/check/check.hpp"
#include "estimator/runtime/check_settings.hpp"
#include "planner/propose/plan_request.hpp"
#include "planner/pytorch/hooked_step.hpp"
#include "planner/pytorch/pytorch_plan.hpp"

namespace stowage {

/// The name of the proposal that does nothing, where everything fits.
inline constexpr std::string_view unchanged_step = "as-is";

struct PytorchRequest {
  /// Of a step of PyTorch's kernels in one micro-batch; its levers are not looked at. `available`
  /// is what the card leaves the allocator.
  PlanRequest plan;
  CheckSettings process;
};

/// A step as the lanes run it: of one micro-batch, with the update.
struct ProposedLanes {
  std::shared_ptr<const StepGraph> graph;  ///< the nodes and storages of the spans
  std::vector<Bytes> storage_bytes;        ///< by StorageId
  HookedLanes lanes;
  double seconds = 0;  ///< no less than the last span's end: hooks may take longer
};

struct PytorchProposal {
  std::string name;  ///< "offload"
  PytorchPlan plan;
  CheckReport report;                ///< of the step as the plan has it run: it fits
  std::vector<std::string> remarks;  ///< "changes the training ..."
  bool changes_training = false;
  ProposedLanes lanes;
};

/// The proposals that fit with a margin (fits_safely; as-is: at all): those that leave the training
/// as it is first, then the shortest step first. Errors: the step is not of PyTorch's kernels in
/// one micro-batch; it cannot be sized; none of these fits: then the message says how far the best
/// one got and what was tried.
[[nodiscard]] Result<std::vector<PytorchProposal>> make_pytorch_plans(
    const PytorchRequest& request, WorkspaceSource& workspaces,
    const ProposalOptions& options = {});

}  // namespace stowage
