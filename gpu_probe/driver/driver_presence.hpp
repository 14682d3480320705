// cuDNN weighs its attention engines, and 9.28 anything at all, only where libcuda.so.1 can be
// loaded; see driver_stand_in/.
#pragma once

#include "estimator/base/diagnostic.hpp"
#include "gpu_probe/driver/shared_library.hpp"

namespace stowage {

/// Afterwards libcuda.so.1 can be loaded in this process: the driver, or, where there is none, the
/// stand-in that is built beside the program. Errors: neither is there.
[[nodiscard]] Result<void> have_some_driver();

/// Whether what was opened is the stand-in: no driver.
[[nodiscard]] bool is_driver_stand_in(const SharedLibrary& library);

}  // namespace stowage
