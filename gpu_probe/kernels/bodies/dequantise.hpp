// Values out of the bytes of quantised weights. The index is a value.
#pragma once

#include "gpu_probe/kernels/bodies/floats.hpp"
#include "gpu_probe/kernels/bodies/mathematics.hpp"

namespace stowage::body {

/// One byte a value, the place in a code of 256.
template <class T, class Real>
struct DequantizeBlocks {
  const Byte* q;
  Floats absmax, code, offset;
  T* y;
  Index block;

  STOWAGE_BODY void operator()(Index i) const {
    store(y, i, code.at<Real>(q[i]) * absmax.at<Real>(i / block) + offset.at<Real>(0));
  }
};

/// Two values a byte, each a place in a code of 16; the high half is the first.
template <class T, class Real>
struct Dequantize4Bit {
  const Byte* q;
  Floats absmax, code;
  T* w;
  Index block;

  STOWAGE_BODY void operator()(Index i) const {
    const Byte both = q[i / 2];
    const Index place = i % 2 == 0 ? both >> 4 : both & 0x0f;
    store(w, i, code.at<Real>(place) * absmax.at<Real>(i / block));
  }
};

/// float8 with 4 bits of exponent (bias 7) and 3 of fraction, without infinities (e4m3fn).
STOWAGE_BODY float widened_float8(Byte bits) {
  const Word32 magnitude = bits & 0x7fU;
  if (magnitude == 0x7f) return not_a_number<float>();
  // As a float32 of the same exponent field: scaling by a power of two is exact.
  const float value = bits_as<float>(magnitude << 20) * 0x1p120F;
  return (bits & 0x80U) != 0 ? -value : value;
}

enum class ByteEncoding : Byte { int8, float8 };

/// One byte a value, and a scale a row.
template <class T, class Real>
struct DequantizeRows {
  const Byte* q;
  Floats scales;
  T* w;
  Index columns;
  ByteEncoding encoding;

  STOWAGE_BODY void operator()(Index i) const {
    const Real scale = scales.at<Real>(i / columns);
    if (encoding == ByteEncoding::float8) {
      return store(w, i, static_cast<Real>(widened_float8(q[i])) * scale);
    }
    const int value = q[i] < 128 ? q[i] : q[i] - 256;
    store(w, i, static_cast<Real>(value) * (scale / Real(127)));
  }
};

}  // namespace stowage::body
