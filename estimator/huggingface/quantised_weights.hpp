// `quantization_config` of a config.json: how the weights on disk were quantised.
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "estimator/huggingface/config_reader.hpp"
#include "estimator/model/fine_tuning.hpp"

namespace stowage {

/// A warning that the network is read as it was before; where a quantised base has the layout of
/// the file's, with that base.
void warn_of_quantised_weights(ConfigReader& config);

/// Whether `warning` is the one above, and `base` has the layout that it names.
[[nodiscard]] bool answers_quantisation(const BaseSettings& base, const Diagnostic& warning);

}  // namespace stowage
