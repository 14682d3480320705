// Division of indices, for bodies that find an element's position from its index.
#pragma once

#include "gpu_probe/kernels/bodies/device.hpp"

namespace stowage::body {

/// a / b, for numbers that are not negative. In 32 bits if they fit: 64 bits take a device several
/// times as long.
STOWAGE_BODY Index quotient(Index a, Index b) {
  if ((static_cast<Word64>(a | b) >> 32) != 0) return a / b;
  return static_cast<Index>(static_cast<Word32>(a) / static_cast<Word32>(b));
}

}  // namespace stowage::body
