// Chooses the loss of a model whose file has none, by its output or as the user asks.
//
//   softmax last              cross entropy of the softmax's input, as in training scripts
//   log_softmax last          nll
//   sigmoid last              bce
//   [batch, classes]          cross entropy; [batch, 1] and [batch]: mse
//   [batch, positions, words] cross entropy of every position, where the model reads tokens;
//                             computed by the module, as transformers does
//   [batch, classes, h, w]    cross entropy of every pixel, unless the output has an input's shape
//   any other                 mse
//
// Further outputs of the first one's shape (auxiliary classifiers) get the same loss, and the sum
// is trained. The targets become new inputs: "target", "target_2".
#pragma once

#include <optional>
#include <span>
#include <string>

#include "estimator/base/diagnostic.hpp"
#include "estimator/import/write_description.hpp"

namespace stowage {

/// Adds losses to `frame` and targets to `layers`; a note says what was chosen. `wanted`: a
/// catalogue row or "none"; absent: the output decides. Errors: `wanted` does not suit the output.
[[nodiscard]] Result<Diagnostics> choose_losses(LayerList& layers,
                                                std::span<const LayerOutput> outputs,
                                                const std::optional<std::string>& wanted,
                                                DescriptionFrame& frame);

}  // namespace stowage
