// Softmax and its logarithm. The index is a line (lines.hpp).
#pragma once

#include "gpu_probe/kernels/bodies/lines.hpp"

namespace stowage::body {

/// Softmax; y may be x. Causal: row q of the last two axes covers only the columns k <= q; y is 0
/// in the others.
template <class T, class Real>
struct SoftmaxForward {
  const T* x;
  T* y;
  Lines lines;
  Index queries;  ///< rows of a causal matrix; 0: not causal

  template <class Threads>
  STOWAGE_BODY void run(Index line, const Threads& threads) const {
    const Index first = lines.first(line), step = lines.inner, length = lines.length;
    const Index active = queries == 0 ? length : least(length, line % queries + 1);
    const Exponentials<Real> e = exponentials<Real>(threads, x + first, step, active);
    for (Index j = threads.rank(); j < length; j += threads.size()) {
      const Index at = first + j * step;
      store(y, at, j < active ? body::exp(load<Real>(x, at) - e.largest) / e.sum : Real(0));
    }
  }
  STOWAGE_BODY void operator()(Index line) const { run(line, Alone{}); }
  STOWAGE_BODY void operator()(Index line, const Group& group) const { run(line, group); }
};

/// dx = y (dy - sum of y dy); dx may be dy.
template <class T, class Real>
struct SoftmaxBackward {
  const T *y, *dy;
  T* dx;
  Lines lines;

  template <class Threads>
  STOWAGE_BODY void run(Index line, const Threads& threads) const {
    const Index first = lines.first(line), step = lines.inner, length = lines.length;
    Real sum = 0;
    for (Index j = threads.rank(); j < length; j += threads.size()) {
      const Index at = first + j * step;
      sum += load<Real>(y, at) * load<Real>(dy, at);
    }
    sum = threads.combined(sum, Sum{});
    for (Index j = threads.rank(); j < length; j += threads.size()) {
      const Index at = first + j * step;
      store(dx, at, load<Real>(y, at) * (load<Real>(dy, at) - sum));
    }
  }
  STOWAGE_BODY void operator()(Index line) const { run(line, Alone{}); }
  STOWAGE_BODY void operator()(Index line, const Group& group) const { run(line, group); }
};

/// The logarithm of softmax; y may be x.
template <class T, class Real>
struct LogSoftmaxForward {
  const T* x;
  T* y;
  Lines lines;

  template <class Threads>
  STOWAGE_BODY void run(Index line, const Threads& threads) const {
    const Index first = lines.first(line), step = lines.inner, length = lines.length;
    const Exponentials<Real> e = exponentials<Real>(threads, x + first, step, length);
    const Real log_sum = e.largest + body::log(e.sum);
    for (Index j = threads.rank(); j < length; j += threads.size()) {
      store(y, first + j * step, load<Real>(x, first + j * step) - log_sum);
    }
  }
  STOWAGE_BODY void operator()(Index line) const { run(line, Alone{}); }
  STOWAGE_BODY void operator()(Index line, const Group& group) const { run(line, group); }
};

/// dx = dy - e^y sum of dy; dx may be dy.
template <class T, class Real>
struct LogSoftmaxBackward {
  const T *y, *dy;
  T* dx;
  Lines lines;

  template <class Threads>
  STOWAGE_BODY void run(Index line, const Threads& threads) const {
    const Index first = lines.first(line), step = lines.inner, length = lines.length;
    Real sum = 0;
    for (Index j = threads.rank(); j < length; j += threads.size()) {
      sum += load<Real>(dy, first + j * step);
    }
    sum = threads.combined(sum, Sum{});
    for (Index j = threads.rank(); j < length; j += threads.size()) {
      const Index at = first + j * step;
      store(dx, at, load<Real>(dy, at) - body::exp(load<Real>(y, at)) * sum);
    }
  }
  STOWAGE_BODY void operator()(Index line) const { run(line, Alone{}); }
  STOWAGE_BODY void operator()(Index line, const Group& group) const { run(line, group); }
};

}  // namespace stowage::body
