// Elements of tensors, and the types in which kernels compute.
//
// `T` is the type of a tensor's elements, `Real` the type in which a body computes. For float32
// that is double on the host, so that results are PyTorch's to the last bits, and float on a
// device, as in PyTorch's own kernels. For 16-bit formats it is the same as for float32; for
// float64 it is double on both.
#pragma once

#include "gpu_probe/kernels/bodies/device.hpp"

namespace stowage::body {

struct Half {
  Word16 bits;
};
struct Bfloat16 {
  Word16 bits;
};

STOWAGE_BODY float widened(Bfloat16 value) {
  return bits_as<float>(static_cast<Word32>(value.bits) << 16);
}

// A half has 5 bits of exponent (bias 15) and 10 of fraction. Scaling by a power of two is exact,
// so the hardware's arithmetic handles subnormal numbers.
STOWAGE_BODY float widened(Half value) {
  const Word32 sign = static_cast<Word32>(value.bits & 0x8000) << 16;
  const Word32 rest = static_cast<Word32>(value.bits & 0x7fff) << 13;
  if ((value.bits & 0x7c00) == 0x7c00) return bits_as<float>(sign | 0x7f800000U | rest);
  const float magnitude = bits_as<float>(rest) * 0x1p112F;
  return bits_as<float>(sign | bits_as<Word32>(magnitude));
}
STOWAGE_BODY float widened(float value) { return value; }
STOWAGE_BODY double widened(double value) { return value; }

/// Rounds to nearest, ties to even; values outside the range become infinity.
STOWAGE_BODY void narrow(float value, Bfloat16& to) {
  const Word32 bits = bits_as<Word32>(value);
  to.bits =
      value != value ? 0x7fc0 : static_cast<Word16>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
STOWAGE_BODY void narrow(float value, Half& to) {
  const Word32 bits = bits_as<Word32>(value);
  const Word32 sign = (bits >> 16) & 0x8000;
  const Word32 magnitude = bits & 0x7fffffff;
  Word32 half = 0;
  if (magnitude > 0x7f800000) {
    to.bits = 0x7e00;  // NaN
    return;
  }
  if (magnitude >= 0x477ff000) {
    half = 0x7c00;  // from 65,520 on: infinity
  } else if (magnitude < 0x38800000) {
    // The half is subnormal: an addition aligns and rounds it.
    half = bits_as<Word32>(bits_as<float>(magnitude) + 0.5F) - 0x3f000000;
  } else {
    const Word32 rebiased = magnitude - (112U << 23);
    half = (rebiased + 0xfff + ((rebiased >> 13) & 1)) >> 13;
  }
  to.bits = static_cast<Word16>(sign | half);
}
STOWAGE_BODY void narrow(float value, float& to) { to = value; }
STOWAGE_BODY void narrow(double value, double& to) { to = value; }
STOWAGE_BODY void narrow(float value, double& to) { to = value; }
// Through float32, as in PyTorch.
STOWAGE_BODY void narrow(double value, float& to) { to = static_cast<float>(value); }
STOWAGE_BODY void narrow(double value, Half& to) { narrow(static_cast<float>(value), to); }
STOWAGE_BODY void narrow(double value, Bfloat16& to) { narrow(static_cast<float>(value), to); }

template <class Real, class T>
STOWAGE_BODY Real load(const T* data, Index i) {
  return static_cast<Real>(widened(data[i]));
}
template <class T, class Real>
STOWAGE_BODY void store(T* data, Index i, Real value) {
  narrow(value, data[i]);
}

enum class FloatFormat : Byte { float32, float64, float16, bfloat16 };

/// A few elements in a format of their own, which is looked up for each element: weights and
/// statistics of a normalisation beside 16-bit activations. Without an address there are none.
struct Floats {
  void* data;
  FloatFormat format;

  [[nodiscard]] STOWAGE_BODY bool is_there() const { return data != nullptr; }

  template <class Real>
  [[nodiscard]] STOWAGE_BODY Real at(Index i) const {
    switch (format) {
      case FloatFormat::float32:
        return load<Real>(static_cast<const float*>(data), i);
      case FloatFormat::float64:
        return load<Real>(static_cast<const double*>(data), i);
      case FloatFormat::float16:
        return load<Real>(static_cast<const Half*>(data), i);
      case FloatFormat::bfloat16:
        return load<Real>(static_cast<const Bfloat16*>(data), i);
    }
    return 0;
  }
  /// Element i; `otherwise` where there is no address.
  template <class Real>
  [[nodiscard]] STOWAGE_BODY Real at(Index i, Real otherwise) const {
    return is_there() ? at<Real>(i) : otherwise;
  }

  template <class Real>
  STOWAGE_BODY void set(Index i, Real value) const {
    switch (format) {
      case FloatFormat::float32:
        return store(static_cast<float*>(data), i, value);
      case FloatFormat::float64:
        return store(static_cast<double*>(data), i, value);
      case FloatFormat::float16:
        return store(static_cast<Half*>(data), i, value);
      case FloatFormat::bfloat16:
        return store(static_cast<Bfloat16*>(data), i, value);
    }
  }
};

}  // namespace stowage::body
