// Division of indices, for bodies that find an element's place from its number.
#pragma once

#include "gpu_probe/kernels/bodies/device.hpp"

namespace stowage::body {

/// a / b of numbers that are not negative. In 32 bits where they fit: a device takes several times
/// as long for 64.
STOWAGE_BODY Index quotient(Index a, Index b) {
  if ((static_cast<Word64>(a | b) >> 32) != 0) return a / b;
  return static_cast<Index>(static_cast<Word32>(a) / static_cast<Word32>(b));
}

}  // namespace stowage::body
