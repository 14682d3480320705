// Completes a recorded step: adds what happens inside its ATen calls.
//
// A step that was recorded from a PyTorch program has ATen calls with their arguments, results and
// lifetimes, but not the memory that a call allocates internally. Here each call is replaced by the
// kernel calls that PyTorch makes for it, with their temporaries, workspaces and operations. The
// facts are those of the lowering of descriptions (estimator/pytorch), so that a model has the same
// size either way. An unknown call is counted by its arguments and results alone, and a warning
// names it.
#pragma once

#include "estimator/document/step_document.hpp"

namespace stowage {

/// The document with all recorded calls completed. A document without any is unchanged, so
/// completing twice has no effect.
/// Errors, with the node's name: a known call with missing or wrong arguments; sizes beyond 64
/// bits, or that grow faster than the batch.
[[nodiscard]] Result<StepDocument> complete_step(StepDocument document);

/// read_step(), then complete_step().
[[nodiscard]] Result<StepDocument> read_completed_step(SourceTextPtr source);

}  // namespace stowage
