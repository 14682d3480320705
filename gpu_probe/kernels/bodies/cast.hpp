// Conversions between formats. To floating-point formats they round to nearest, ties to even; to
// integers towards zero. The index is an element.
#pragma once

#include "gpu_probe/kernels/bodies/floats.hpp"
#include "gpu_probe/kernels/bodies/integers.hpp"

namespace stowage::body {

/// float64 is converted to 16-bit formats through float32, as in PyTorch.
template <class From, class To, class Real>
struct Cast {
  const From* x;
  To* y;
  STOWAGE_BODY void operator()(Index i) const { store(y, i, load<Real>(x, i)); }
};

struct CastToInteger {
  Floats x;
  Integers y;

  STOWAGE_BODY void operator()(Index i) const {
    const double value = x.at<double>(i);
    y.set(i, y.format == IntegerFormat::boolean ? static_cast<Index>(value != 0) : whole(value));
  }
  /// The whole number of a value; the lowest number for values that have none, such as NaN.
  [[nodiscard]] STOWAGE_BODY static Index whole(double value) {
    constexpr Index lowest = -0x7fffffffffffffff - 1;
    return value >= -0x1p63 && value < 0x1p63 ? static_cast<Index>(value) : lowest;
  }
};

struct CastFromInteger {
  Integers x;
  Floats y;
  STOWAGE_BODY void operator()(Index i) const { y.set(i, static_cast<double>(x.at(i))); }
};

struct CastIntegers {
  Integers x, y;
  STOWAGE_BODY void operator()(Index i) const { y.set(i, x.at(i)); }
};

}  // namespace stowage::body
