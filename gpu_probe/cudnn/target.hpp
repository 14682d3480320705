// CudnnTarget: the device that an operation graph, its engines and their plans are made for. It is
// either described, or present and given by a handle of cuDNN.
#pragma once

#include "gpu_probe/cudnn/library.hpp"

namespace stowage {

struct CudnnTarget {
  const CudnnDescriptor* described = nullptr;  ///< a finalised device descriptor
  void* handle = nullptr;                      ///< where no device is described

  /// Sets the attribute that takes a described device. Does nothing for a handle, which the graph
  /// already has.
  void describe(CudnnDescriptor& descriptor, cudnnBackendAttributeName_t name) const {
    if (described != nullptr) descriptor.set(name, *described);
  }
};

}  // namespace stowage
