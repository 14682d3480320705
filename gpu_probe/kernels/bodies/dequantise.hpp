// Computes values from the bytes of quantised weights. The index is a value.
#pragma once

#include "gpu_probe/kernels/bodies/floats.hpp"
#include "gpu_probe/kernels/bodies/mathematics.hpp"

namespace stowage::body {

/// Each value is one byte: an index into a code of 256 values.
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

/// Each byte has two values: indices into a code of 16 values. The high half is the first.
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

/// The value of a float8 with 4 bits of exponent (bias 7) and 3 bits of fraction, without
/// infinities (e4m3fn).
STOWAGE_BODY float widened_float8(Byte bits) {
  const Word32 magnitude = bits & 0x7fU;
  if (magnitude == 0x7f) return not_a_number<float>();
  // Reads the bits as a float32 with the same exponent field; then scales by a power of two, which
  // is exact.
  const float value = bits_as<float>(magnitude << 20) * 0x1p120F;
  return (bits & 0x80U) != 0 ? -value : value;
}

enum class ByteEncoding : Byte { int8, float8 };

/// Each value is one byte, and each row has a scale.
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
