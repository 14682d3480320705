// The output layer and the loss in parts of the sequence, as torchtune 0.6 has them
// (TransformerDecoder.chunked_output, CEWithChunkedOutputLoss):
//
//   logits = [output(part) for part in h.chunk(n, dim=1)]
//   loss = sum(cross_entropy(part.float(), labels) for part, labels in ...)
//
// The list holds the logits of all parts, in the model's format, until the loss is computed; then
// the script drops it. What each part saves for backward stays. Without torch.compile these are the
// float32 log-probabilities, so that chunks avoid only one float32 copy of the logits and one of
// their gradient. `compiled` is torch.compile of a part's loss, as torchtune's `compile: True` has
// it: one kernel that reads the logits in the model's format and saves two numbers per row, so that
// no float32 copy exists.
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/model_graph.hpp"

namespace stowage {

/// torch.chunk decides the lengths of the parts: the last may be shorter, and there may be fewer
/// parts than asked for. Errors: a model without a loss, or whose loss is not the plain cross
/// entropy of an output layer's result, reshaped at most.
[[nodiscard]] Result<ModelGraph> with_chunked_loss(ModelGraph model,
                                                   const ChunkedLossSettings& settings);

}  // namespace stowage
