// Handles layers without a catalogue row, and parameters that several layers share.
#pragma once

#include <map>

#include "estimator/import/write_description.hpp"

namespace stowage {

/// Turns the foreign layers that the output or a loss needs into `custom` operators, counted by
/// their outputs. Without gradients that is their memory. Layers with gradients are converted only
/// with `allow`, with a warning. Errors: without `allow`, all layers with gradients at once.
/// `reasons`: by layer, why it is foreign.
[[nodiscard]] Result<Diagnostics> count_unknown_operators(
    LayerList& layers, const DescriptionFrame& frame, bool allow,
    const std::map<int, std::string>& reasons);

/// Ties the parameters that several layers share to the first of them, which keeps the file's name.
void tie_shared_parameters(LayerList& layers, const DescriptionFrame& frame);

}  // namespace stowage
