// Dropout. Which elements are kept depends only on the seed and the element's index. So a mask is
// the same whenever its node runs again, on any device.
#pragma once

#include "gpu_probe/kernels/bodies/division.hpp"
#include "gpu_probe/kernels/bodies/floats.hpp"

namespace stowage::body {

struct MaskDraw {
  Word64 stream, threshold;

  /// Splitmix64's output function, which mixes a counter well.
  [[nodiscard]] STOWAGE_BODY static Word64 mixed(Word64 counter) {
    Word64 z = counter * 0x9e3779b97f4a7c15UL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9UL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebUL;
    return z ^ (z >> 31);
  }
  [[nodiscard]] STOWAGE_BODY bool keeps(Index element) const {
    return mixed(stream + static_cast<Word64>(element)) >> 11 >= threshold;
  }
};

/// Draws a mask. The index is an element of the mask.
struct DrawMask {
  Byte* mask;
  MaskDraw draw;
  STOWAGE_BODY void operator()(Index i) const { mask[i] = draw.keeps(i) ? 1 : 0; }
};

/// Applies a mask: y = x times scale, or times 0; y may be x. A dropped NaN stays NaN, so that a
/// poisoned input is noticed. One element of the mask belongs to `together` elements of x. The
/// index is an element of x.
template <class T, class Real>
struct Masked {
  const T* x;
  T* y;
  const Byte* mask;
  Index together;
  float scale;

  STOWAGE_BODY void operator()(Index i) const {
    const Byte kept = mask[together == 1 ? i : quotient(i, together)];
    store(y, i, load<Real>(x, i) * (static_cast<Real>(scale) * static_cast<Real>(kept)));
  }
};

}  // namespace stowage::body
