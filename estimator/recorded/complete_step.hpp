// From a recorded step to a whole one: what happens inside kernels is added.
//
// A step that was recorded from a program of PyTorch's holds ATen calls: their arguments, results
// and deaths, and nothing of what a call allocates within itself. Here each call becomes the kernel
// calls that PyTorch makes of it, with their temporaries, workspaces and operations, from the same
// facts as the lowering of a description (estimator/pytorch), so that a model weighs the same by
// both roads. A call that nothing is known of is weighed by its arguments and results alone, and a
// warning names it.
#pragma once

#include "estimator/document/step_document.hpp"

namespace stowage {

/// The document with all recorded calls completed; one without any as it is. What a completed
/// document says is completed: doing it twice changes nothing.
/// Errors, naming the node: a call of a kernel of the table that lacks arguments, or has ones that
/// the kernel does not take; sizes past 64 bits or that grow faster than the batch.
[[nodiscard]] Result<StepDocument> complete_step(StepDocument document);

/// read_step, and complete_step.
[[nodiscard]] Result<StepDocument> read_whole_step(SourceTextPtr source);

}  // namespace stowage
