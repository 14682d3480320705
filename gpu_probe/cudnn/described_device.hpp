// A device descriptor of cuDNN for a card that is not in the machine.
#pragma once

#include <string>

#include "gpu_probe/cudnn/library.hpp"

namespace stowage {

/// `text`: Card::cudnn_device_json. Throws LibraryFailure where cuDNN refuses it.
[[nodiscard]] CudnnDescriptor described_device(const CudnnLibrary& library,
                                               const std::string& text);

}  // namespace stowage
