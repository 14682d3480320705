// A device that cuDNN is told of.
#pragma once

#include <string>

#include "gpu_probe/cudnn/library.hpp"

namespace stowage {

/// By a card's text (Card::cudnn_device_json). Throws LibraryFailure where cuDNN refuses it.
[[nodiscard]] CudnnDescriptor described_device(const CudnnLibrary& library,
                                               const std::string& text);

}  // namespace stowage
