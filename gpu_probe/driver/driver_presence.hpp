// Makes libcuda.so.1 loadable for cuDNN. Without it cuDNN does not tell the workspaces of its
// attention engines, and cuDNN 9.28 does not start; see driver_stand_in/.
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "gpu_probe/driver/shared_library.hpp"

namespace stowage {

/// Loads libcuda.so.1 into this process: the driver or, where there is none, the stand-in that is
/// built beside the program. Errors: both are missing.
[[nodiscard]] Result<void> ensure_driver_loads();

/// Whether an opened libcuda.so.1 is the stand-in.
[[nodiscard]] bool is_driver_stand_in(const SharedLibrary& library);

}  // namespace stowage
