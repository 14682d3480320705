// The blocks of a step whose parameters can be streamed: they lie on the host, and are on the GPU
// while their block runs.
#pragma once

#include <cstddef>
#include <vector>

#include "estimator/document/step_document.hpp"
#include "estimator/rewrite/streamed_parameters.hpp"

namespace stowage {

/// The repeated blocks (numbered_module) that have parameters which can be streamed, in the order
/// in which they run, of the document's step or a rewriting of it. Such a parameter gets no
/// gradient, and none but its block's forward kernels and backward read it: tied ones stay.
/// Quantised weights stay too: to PyTorch they are more than their bytes. So do a recurrent
/// layer's, whose module keeps a list of them. Left out: a block of whose parameters less than half
/// could be streamed, by bytes; one whose forward kernels do not run one after the other, as a
/// module does that is called twice. O(nodes + storages).
[[nodiscard]] std::vector<StreamedBlock> streamable_blocks(const StepDocument& document,
                                                           const StepGraph& step);

/// Whether kernels read parameters that are no floating-point numbers.
[[nodiscard]] bool has_quantised_weights(const StepGraph& step);

/// `count` of the blocks, evenly spread, so that each one's copy has the kernels of the blocks
/// between to hide behind. Precondition: count <= blocks.
[[nodiscard]] std::vector<StreamedBlock> spread_blocks(const std::vector<StreamedBlock>& blocks,
                                                       std::size_t count);

}  // namespace stowage
