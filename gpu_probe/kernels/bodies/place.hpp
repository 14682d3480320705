// Place: an element's position in planes of three axes, found from its index.
#pragma once

#include "gpu_probe/kernels/bodies/division.hpp"

namespace stowage::body {

struct Place {
  Index plane, first, second, third;
};

/// The position of element i of [planes, first, second, third].
STOWAGE_BODY Place place_of(Index i, Index first, Index second, Index third) {
  const Index rows = quotient(i, third), sheets = quotient(rows, second);
  const Index plane = quotient(sheets, first);
  return {plane, sheets - plane * first, rows - sheets * second, i - rows * third};
}

}  // namespace stowage::body
