// Reads `arguments:` and `symbols:`: the names that expressions may use, with the description's
// values or those that the user or a variant gives instead.
#pragma once

#include "estimator/model/model_description.hpp"
#include "estimator/model/model_options.hpp"
#include "estimator/text/mistakes.hpp"
#include "estimator/text/yaml_document.hpp"

namespace stowage {

/// Sets model.value_names, values and default_seq. Mistakes in the options are reported at their
/// places: a variant's line, or "<arguments>".
void read_model_values(const YamlNode& root, const ModelOptions& options, ModelDescription& model,
                       Mistakes& mistakes);

}  // namespace stowage
