// cuDNN's own text of a device that is there: what Card::cudnn_device_json describes for one that
// is not.
#pragma once

#include <string>

#include "estimator/base/diagnostic.hpp"

namespace stowage {

/// `ordinal`: CUDA's number of the device, whose context exists. Errors: not built with cuDNN, not
/// installed, too old, cuDNN's own words.
[[nodiscard]] Result<std::string> cudnn_device_text(int ordinal);

}  // namespace stowage
