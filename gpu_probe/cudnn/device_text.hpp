// cuDNN's own text of a device in this machine, in the form of Card::cudnn_device_json.
#pragma once

#include <string>

#include "estimator/base/diagnostic.hpp"

namespace stowage {

/// `ordinal`: CUDA's number of the device, whose context exists. Errors: cuDNN is not installed or
/// too old; cuDNN's own words.
[[nodiscard]] Result<std::string> cudnn_device_text(int ordinal);

}  // namespace stowage
