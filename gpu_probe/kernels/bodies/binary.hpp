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

/// All of one shape and format; y may be a or b.
template <class T, class Real, class Operation>
struct Binary {
  const T *a, *b;
  T* y;
  STOWAGE_BODY void operator()(Index i) const {
    store(y, i, Operation{}(load<Real>(a, i), load<Real>(b, i)));
  }
};

/// With operands in formats of their own, repeated to y's shape. y may be the one that is not.
template <class T, class Real, class Operation>
struct BroadcastBinary {
  Floats a, b;
  T* y;
  Strided of_a, of_b;
  STOWAGE_BODY void operator()(Index i) const {
    store(y, i, Operation{}(a.at<Real>(of_a.offset(i)), b.at<Real>(of_b.offset(i))));
  }
};

/// Of whole numbers, which wrap round where they overflow, as PyTorch's do.
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

/// y = factor x + offset; y may be x.
template <class T, class Real>
struct Scale {
  const T* x;
  T* y;
  Real factor, offset;
  STOWAGE_BODY void operator()(Index i) const { store(y, i, factor * load<Real>(x, i) + offset); }
};

}  // namespace stowage::body
