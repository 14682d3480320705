// Reads `quantization_config` of a config.json: how the weights on disk were quantised.
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "estimator/huggingface/config_reader.hpp"
#include "estimator/model/fine_tuning.hpp"

namespace stowage {

/// Warns that the network is sized as it was before quantisation. If a setting `base` has the
/// file's layout, the hint names it.
void warn_of_quantised_weights(ConfigReader& config);

/// Whether `warning` is that warning and `base` is the setting that it names.
[[nodiscard]] bool answers_quantisation(const BaseSettings& base, const Diagnostic& warning);

}  // namespace stowage
