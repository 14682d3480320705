// What an operation graph, its engines and their plans are made for: a device that is described, or
// a handle of cuDNN on one that is present.
#pragma once

#include "gpu_probe/cudnn/library.hpp"

namespace stowage {

struct CudnnTarget {
  const CudnnDescriptor* described = nullptr;  ///< a finalised device descriptor
  void* handle = nullptr;                      ///< where none is described

  /// Sets the attribute that takes a described device; where one is present the graph has said it.
  void describe(CudnnDescriptor& descriptor, cudnnBackendAttributeName_t name) const {
    if (described != nullptr) descriptor.set(name, *described);
  }
};

}  // namespace stowage
