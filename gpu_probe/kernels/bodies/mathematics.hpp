// Functions of <cmath> in the type in which a body computes. C's names for float need no header
// under NVRTC.
#pragma once

#include "gpu_probe/kernels/bodies/device.hpp"

namespace stowage::body {

#define STOWAGE_FUNCTION_OF_ONE(name)                       \
  STOWAGE_BODY float name(float x) { return ::name##f(x); } \
  STOWAGE_BODY double name(double x) { return ::name(x); }
STOWAGE_FUNCTION_OF_ONE(exp)
STOWAGE_FUNCTION_OF_ONE(expm1)
STOWAGE_FUNCTION_OF_ONE(log)
STOWAGE_FUNCTION_OF_ONE(log1p)
STOWAGE_FUNCTION_OF_ONE(sqrt)
STOWAGE_FUNCTION_OF_ONE(tanh)
STOWAGE_FUNCTION_OF_ONE(erf)
STOWAGE_FUNCTION_OF_ONE(sin)
STOWAGE_FUNCTION_OF_ONE(cos)
STOWAGE_FUNCTION_OF_ONE(floor)
STOWAGE_FUNCTION_OF_ONE(ceil)
STOWAGE_FUNCTION_OF_ONE(trunc)
STOWAGE_FUNCTION_OF_ONE(rint)
STOWAGE_FUNCTION_OF_ONE(fabs)
#undef STOWAGE_FUNCTION_OF_ONE

STOWAGE_BODY float pow(float x, float y) { return ::powf(x, y); }
STOWAGE_BODY double pow(double x, double y) { return ::pow(x, y); }

template <class Real>
STOWAGE_BODY Real infinity() {
#ifdef __CUDACC_RTC__
  return static_cast<Real>(__int_as_float(0x7f800000));
#else
  return std::numeric_limits<Real>::infinity();
#endif
}
template <class Real>
STOWAGE_BODY Real not_a_number() {
  return infinity<Real>() - infinity<Real>();
}

/// 1 / (1 + e^-x).
template <class Real>
STOWAGE_BODY Real sigmoid(Real x) {
  return 1 / (1 + exp(-x));
}

}  // namespace stowage::body
