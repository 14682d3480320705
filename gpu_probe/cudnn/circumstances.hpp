// What cuDNN's answers depend on besides the question, found without starting cuDNN: libraries,
// environment variables, the device.
//
// libcudnn.so.9 is a forwarder of some 130 KB. It is opened (0.2 ms) so that the loader finds its
// path, and none of its functions is called. The engines lie in other libraries, which take long to
// load.
#pragma once

#include <optional>
#include <string>

#include "gpu_probe/driver/shared_library.hpp"

namespace stowage {

/// libcudnn.so.9 from the first of cudnn_places() that can be loaded. It stays loaded.
[[nodiscard]] const SharedLibrary& cudnn_forwarder();

/// "SIZE MODIFIED CHANGED PATH", times in nanoseconds; "absent PATH" where there is no such file. A
/// file that is replaced gets another stamp, even if its modification time was set back.
[[nodiscard]] std::string file_stamp(const std::string& path);

/// One line each: the hash of the sources that ask cuDNN (`sources_hash`), the environment
/// variables that steer libraries and cuDNN, the stamp of the loader's index, the forwarder's
/// stamp, the device.
/// "" where there is no cuDNN.
[[nodiscard]] std::string cudnn_circumstances(const std::string& sources_hash,
                                              const std::string& device);

/// The stamps, one a line, of the libraries of this process that take part in the answers: of
/// cuDNN, cuBLAS, NVRTC and the driver. Nullopt where one was replaced after it was loaded.
[[nodiscard]] std::optional<std::string> loaded_cudnn_parts();

/// Whether each file still has the stamp that its line in `stamps` has.
[[nodiscard]] bool files_unchanged(const std::string& stamps);

}  // namespace stowage
