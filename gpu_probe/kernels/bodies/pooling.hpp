// Pooling. In backward each input collects from the outputs whose windows hold it.
#pragma once

#include "gpu_probe/kernels/bodies/alone.hpp"
#include "gpu_probe/kernels/bodies/floats.hpp"
#include "gpu_probe/kernels/bodies/group.hpp"
#include "gpu_probe/kernels/bodies/integers.hpp"
#include "gpu_probe/kernels/bodies/mathematics.hpp"
#include "gpu_probe/kernels/bodies/windows.hpp"

namespace stowage::body {

/// Average pooling, forward. The index is an output; a group shares a large window.
template <class T, class Real>
struct AveragePoolForward {
  const T* x;
  T* y;
  Windows windows;

  template <class Threads>
  STOWAGE_BODY void run(Index o, const Threads& threads) const {
    const Place place = windows.output(o);
    const Box box(windows, place);
    const T* const plane = x + place.plane * windows.in_area();
    Real sum = 0;
    box.each(threads, [&](Index i) { sum += load<Real>(plane, i); });
    sum = threads.combined(sum, Sum{});
    if (threads.rank() == 0) store(y, o, sum / static_cast<Real>(box.divisor()));
  }
  STOWAGE_BODY void operator()(Index o) const { run(o, Alone{}); }
  STOWAGE_BODY void operator()(Index o, const Group& group) const { run(o, group); }
};

/// Average pooling, backward. The index is an input.
template <class T, class Real>
struct AveragePoolBackward {
  const T* dy;
  T* dx;
  Windows windows;

  STOWAGE_BODY void operator()(Index i) const {
    const Place place = windows.input(i);
    const T* const arrives = dy + place.plane * windows.out_area();
    Real sum = 0;
    each_taker(windows, place, [&](Index o, const Box& box) {
      sum += load<Real>(arrives, o) / static_cast<Real>(box.divisor());
    });
    store(dx, i, sum);
  }
};

/// Maximum pooling, forward. The index is an output. NaN counts as the largest value, as in
/// PyTorch.
template <class T, class Real>
struct MaximumPoolForward {
  const T* x;
  T* y;
  Integers indices;
  Windows windows;

  STOWAGE_BODY void operator()(Index o) const {
    const Place place = windows.output(o);
    const T* const plane = x + place.plane * windows.in_area();
    Real best = -infinity<Real>();
    Index where = -1;
    Box(windows, place).each(Alone{}, [&](Index i) {
      const Real value = load<Real>(plane, i);
      if (where < 0 || value > best || value != value) {
        best = value;
        where = i;
      }
    });
    store(y, o, best);
    if (indices.is_there()) indices.set(o, where);
  }
};

/// Maximum pooling, backward. The index is an input. The first maximum of a window gets the
/// gradient.
template <class T, class Real>
struct MaximumPoolBackward {
  const T *x, *y, *dy;
  T* dx;
  Windows windows;

  STOWAGE_BODY void operator()(Index i) const {
    const Place place = windows.input(i);
    const Index outputs = place.plane * windows.out_area();
    const T* const plane = x + place.plane * windows.in_area();
    const Index own = i - place.plane * windows.in_area();
    const Real value = load<Real>(x, i);
    Real sum = 0;
    each_taker(windows, place, [&](Index o, const Box& box) {
      const Real maximum = load<Real>(y, outputs + o);
      const bool is_first = own == box.offset(box.first.begin, box.second.begin, box.third.begin);
      if (value != maximum && !is_first) return;
      Index gets = -1;
      box.each_until([&](Index other) {
        if (load<Real>(plane, other) == maximum) gets = other;
        return gets < 0;
      });
      if (gets == own) sum += load<Real>(dy, outputs + o);
      // No element equals the maximum: x or y is not the forward pass's. The first element of the
      // window gets NaN.
      if (gets < 0) sum = not_a_number<Real>();
    });
    store(dx, i, sum);
  }
};

}  // namespace stowage::body
