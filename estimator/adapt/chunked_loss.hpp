// The output layer and the loss in parts of the sequence, as torchtune 0.6 has them
// (TransformerDecoder.chunked_output, CEWithChunkedOutputLoss):
//
//   logits = [output(part) for part in h.chunk(n, dim=1)]
//   loss = sum(cross_entropy(part.float(), labels) for part, labels in ...)
//
// The list keeps all parts' logits, in the model's format, until the loss is made; then the script
// lets go of it. What a part saves for backward lives on: run by operators the float32
// log-probabilities, so that chunks save nothing of the largest tensor but one float32 copy of the
// logits and of their gradient. `compiled` is torch.compile of a part's loss, which torchtune's
// `compile: True` brings about: one kernel that reads the logits as they are and saves two numbers
// a row, so that nothing of float32 is ever there.
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/model_graph.hpp"

namespace stowage {

/// The parts are as long as torch.chunk makes them: the last may be shorter, and there may be
/// fewer. Errors: a model without a loss, or whose loss is not the plain cross entropy of an output
/// layer's result, reshaped at most.
[[nodiscard]] Result<ModelGraph> with_chunked_loss(ModelGraph model,
                                                   const ChunkedLossSettings& settings);

}  // namespace stowage
