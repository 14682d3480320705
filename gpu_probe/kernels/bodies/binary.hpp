// Functions of two numbers, element by element. The index is an element of y.
#pragma once

#include "gpu_probe/kernels/bodies/floats.hpp"
#include "gpu_probe/kernels/bodies/group.hpp"
#include "gpu_probe/kernels/bodies/strided.hpp"

namespace stowage::body {

struct Difference {
  template <class T>
  STOWAGE_BODY T operator()(T a, T b) const {
    return a - b;
  }
};
struct Product {
  template <class T>
  STOWAGE_BODY T operator()(T a, T b) const {
    return a * b;
  }
};
struct Quotient {
  template <class T>
  STOWAGE_BODY T operator()(T a, T b) const {
    return a / b;
  }
};

struct Larger {  ///< NaN if one is, as in PyTorch
  template <class T>
  STOWAGE_BODY T operator()(T a, T b) const {
    return a != a || a > b ? a : b;
  }
};
struct Smaller {
  template <class T>
  STOWAGE_BODY T operator()(T a, T b) const {
    return a != a || a < b ? a : b;
  }
};

/// For operands and result of one shape and format; y may be a or b.
template <class T, class Real, class Operation>
struct Binary {
  const T *a, *b;
  T* y;
  STOWAGE_BODY void operator()(Index i) const {
    store(y, i, Operation{}(load<Real>(a, i), load<Real>(b, i)));
  }
};

/// For operands in formats of their own, repeated to y's shape; y may be an operand that is not
/// repeated.
template <class T, class Real, class Operation>
struct BroadcastBinary {
  Floats a, b;
  T* y;
  Strided of_a, of_b;
  STOWAGE_BODY void operator()(Index i) const {
    store(y, i, Operation{}(a.at<Real>(of_a.offset(i)), b.at<Real>(of_b.offset(i))));
  }
};

/// For whole numbers. They wrap round where they overflow, as in PyTorch.
template <class Operation>
struct BinaryOfIntegers {
  const Index *a, *b;
  Index* y;
  Strided of_a, of_b;
  STOWAGE_BODY void operator()(Index i) const {
    y[i] = static_cast<Index>(Operation{}(static_cast<Word64>(a[of_a.offset(i)]),
                                          static_cast<Word64>(b[of_b.offset(i)])));
  }
};

/// The gradient of the first operand of a maximum or minimum: dy where that operand was taken, half
/// of it where both were equal, else 0. The operands are repeated to dy's shape; da may be dy.
template <class T, class Real>
struct ExtremumBackward {
  Floats a, b;
  const T* dy;
  T* da;
  Strided of_a, of_b;
  bool smaller;
  STOWAGE_BODY void operator()(Index i) const {
    const Real first = a.at<Real>(of_a.offset(i)), second = b.at<Real>(of_b.offset(i));
    const bool other = smaller ? first > second : first < second;
    const Real arrives = load<Real>(dy, i);
    store(da, i, other ? Real(0) : first == second ? arrives / 2 : arrives);
  }
};

/// y = factor x + offset; y may be x.
template <class T, class Real>
struct Scale {
  const T* x;
  T* y;
  Real factor, offset;
  STOWAGE_BODY void operator()(Index i) const { store(y, i, factor * load<Real>(x, i) + offset); }
};

}  // namespace stowage::body
