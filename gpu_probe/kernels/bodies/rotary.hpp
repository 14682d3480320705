// Rotary position embedding (Su et al., 2021): pairs of features are rotated by an angle that grows
// with the position.
#pragma once

#include "gpu_probe/kernels/bodies/floats.hpp"
#include "gpu_probe/kernels/bodies/mathematics.hpp"
#include "gpu_probe/kernels/bodies/strided.hpp"

namespace stowage::body {

/// Which two features of a row are a pair: i and i + half, or neighbours. The index is a pair.
struct RotaryPairs {
  Index half;  ///< half the features of a row
  bool halves;
  Strided angles;  ///< where a row's cosines and sines begin

  struct Pair {
    Index row, first, second;
  };
  [[nodiscard]] STOWAGE_BODY Pair at(Index i) const {
    const Index row = quotient(i, half), k = i - row * half;
    return halves ? Pair{row, k, k + half} : Pair{row, 2 * k, 2 * k + 1};
  }
};

/// Rotates the pairs; y may be x. In backward x is dy and y is dx.
template <class T, class Real, bool backward>
struct Rotary {
  const T* x;
  T* y;
  Floats cos, sin;
  RotaryPairs pairs;

  STOWAGE_BODY void operator()(Index i) const {
    const RotaryPairs::Pair p = pairs.at(i);
    const Index row = p.row * 2 * pairs.half, angle = pairs.angles.offset(p.row);
    const Real first = load<Real>(x, row + p.first), second = load<Real>(x, row + p.second);
    const Real cos_1 = cos.at<Real>(angle + p.first), cos_2 = cos.at<Real>(angle + p.second);
    const Real sin_1 = sin.at<Real>(angle + p.first), sin_2 = sin.at<Real>(angle + p.second);
    if (backward) {
      store(y, row + p.first, first * cos_1 + second * sin_2);
      store(y, row + p.second, second * cos_2 - first * sin_1);
    } else {
      store(y, row + p.first, first * cos_1 - second * sin_1);
      store(y, row + p.second, second * cos_2 + first * sin_2);
    }
  }
};

/// Cosines and sines of [positions, features], computed in double since positions are large. The
/// index is an element.
struct RotaryTable {
  Floats cos, sin;
  Index features;
  double base;

  STOWAGE_BODY void operator()(Index i) const {
    const Index position = quotient(i, features), half = quotient(features, 2);
    const double exponent =
        2.0 * static_cast<double>((i - position * features) % half) / static_cast<double>(features);
    const double angle = static_cast<double>(position) / body::pow(base, exponent);
    cos.set(i, body::cos(angle));
    sin.set(i, body::sin(angle));
  }
};

}  // namespace stowage::body
