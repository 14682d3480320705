// Alone: for bodies that are written once, for a group of threads and for a single thread.
#pragma once

#include "gpu_probe/kernels/bodies/device.hpp"

namespace stowage::body {

/// A single thread with the interface of a Group.
struct Alone {
  [[nodiscard]] STOWAGE_BODY Index rank() const { return 0; }
  [[nodiscard]] STOWAGE_BODY Index size() const { return 1; }
  template <class Value, class Combine>
  [[nodiscard]] STOWAGE_BODY Value combined(Value value, Combine) const {
    return value;
  }
};

}  // namespace stowage::body
