// `quantization_config` of a config.json: how the weights on disk were quantised.
#pragma once

#include "estimator/huggingface/config_reader.hpp"

namespace stowage {

/// A warning that the network is read as it was before; where a quantised base has the layout of
/// the file's, with that base.
void warn_of_quantised_weights(ConfigReader& config);

}  // namespace stowage
