// What of a translation the catalogue has no row for.
#pragma once

#include <map>

#include "estimator/import/write_description.hpp"

namespace stowage {

/// Foreign layers that the output or a loss needs become `custom`, counted by their outputs:
/// those that no gradient passes, whose memory that is; with `allow` all others too, with a
/// warning. Errors: those others, all of them at once. `reasons`: of a layer, why it is foreign.
[[nodiscard]] Result<Diagnostics> count_unknown_operators(
    LayerList& layers, const DescriptionFrame& frame, bool allow,
    const std::map<int, std::string>& reasons);

/// Of parameters that several layers read the first keeps the file's name, and the others are tied
/// to it.
void tie_shared_parameters(LayerList& layers, const DescriptionFrame& frame);

}  // namespace stowage
