// Parameters streamed by block: rewrites a step of PyTorch's kernels so that the parameters of some
// blocks lie in pinned host memory and are on the GPU only around the kernels that read them.
//
//   forward    | a up, b up | block a | c up | block b | block c | ...
//   backward   | c up, b up | block c | a up | block b | block a | ...
//
// A block's parameters are one piece of memory on the GPU, "h.3.streamed": each begins at a
// multiple of 512 bytes, as PyTorch's allocator would place it. The piece is allocated before the
// block's first forward kernel and let go behind its last one; before the block runs, the copy of
// the next streamed block begins, so that parameters of two blocks are there at a time. Backward
// has pieces of its own, in its order: each is there until the last kernel that reads it.
// docs/apply.md says how PyTorch is made to do so.
#pragma once

#include <string>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/base/diagnostic.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// Where parameters begin within a block's piece: at multiples of so many bytes.
inline constexpr std::int64_t streamed_alignment = 512;

/// A block, and which of its parameters are streamed.
struct StreamedBlock {
  std::string module;                 ///< its path
  NodeId first, last;                 ///< of its forward kernels
  std::vector<StorageId> parameters;  ///< in the order in which they lie in the piece
};

/// A block as it has been streamed.
struct StreamedPiece {
  std::int64_t bytes = 0;
  int uploads = 1;  ///< in a micro-batch: 2 where backward reads it too
};

struct StreamedStep {
  StepGraph step;
  std::vector<StreamedPiece> pieces;  ///< by block
};

/// The parameters' storages are taken out of the step, and out of its list of saved tensors; what
/// the host keeps is added to StepGraph::host_buffers. Linear in the step, except for sorting.
/// Precondition: the blocks stand in the order in which they run.
/// Errors: a block's parameter is in two blocks, is written, follows the batch, or is read by
/// another node than the block's own in forward or one in backward; blocks overlap.
[[nodiscard]] Result<StreamedStep> with_streamed_parameters(
    StepGraph step, const std::vector<StreamedBlock>& blocks);

}  // namespace stowage
