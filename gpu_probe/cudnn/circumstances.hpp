// What cuDNN's answers depend on besides the question, found without starting cuDNN.
//
// libcudnn.so.9 is a forwarder of some 130 KB; it is opened (0.2 ms), so that it is the loader that
// finds it, and asked nothing. The engines, and with them the start-up, lie in other libraries.
#pragma once

#include <optional>
#include <string>

#include "gpu_probe/driver/shared_library.hpp"

namespace stowage {

/// libcudnn.so.9 from the first of cudnn_places() that can be loaded. It stays loaded.
[[nodiscard]] const SharedLibrary& cudnn_forwarder();

/// "SIZE MODIFIED CHANGED PATH", times in nanoseconds; "absent PATH" where it is not. A file that
/// is replaced has another stamp, even if its modification time was set back.
[[nodiscard]] std::string file_stamp(const std::string& path);

/// A line each: the sources that ask (`asker`, a hash), the environment that steers libraries and
/// cuDNN, the loader's own index, the forwarder's stamp, the device. "" where there is no cuDNN.
[[nodiscard]] std::string cudnn_circumstances(const std::string& asker, const std::string& device);

/// The stamps, a line each, of those libraries of this process that have a part in the answers: of
/// cuDNN, cuBLAS, NVRTC and the driver. Nullopt where one was replaced since it was loaded.
[[nodiscard]] std::optional<std::string> loaded_cudnn_parts();

/// Whether every line of `stamps` is still so.
[[nodiscard]] bool files_unchanged(const std::string& stamps);

}  // namespace stowage
