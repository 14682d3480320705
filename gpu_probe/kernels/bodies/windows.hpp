// Windows: the windows of pooling: which inputs an output takes, and which outputs take an input.
//
// A window is clipped to the input. The divisor of an average counts the window clipped to the
// padded input, or to the input itself, as in PyTorch, also in ceil mode.
#pragma once

#include "gpu_probe/kernels/bodies/place.hpp"

namespace stowage::body {

/// The input positions begin, begin + step, ... < end, and the size that an average divides by.
struct Window {
  Index begin, end, step, divisor;

  [[nodiscard]] STOWAGE_BODY Index count() const { return quotient(end - begin + step - 1, step); }
};

/// The outputs [begin, end).
struct Takers {
  Index begin, end;
};

struct WindowAxis {
  Index in, out;
  /// 0: adaptive; output o takes the inputs floor(o in / out) to ceil((o + 1) in / out).
  Index kernel;
  Index stride, padding, dilation;
  bool counts_padding;

  [[nodiscard]] STOWAGE_BODY Window window(Index o) const {
    if (kernel == 0) {
      const Index begin = quotient(o * in, out), end = quotient((o + 1) * in + out - 1, out);
      return {begin, end, 1, end - begin};
    }
    const Index first = o * stride - padding, past = first + (kernel - 1) * dilation + 1;
    const Index begin =
        first >= 0 ? first : first + quotient(dilation - 1 - first, dilation) * dilation;
    const Index end = least(past, in);
    return {begin, end, dilation, counts_padding ? least(past, in + padding) - first : end - begin};
  }

  /// All outputs whose windows hold input i are among these.
  [[nodiscard]] STOWAGE_BODY Takers takers(Index i) const {
    if (kernel == 0) return {quotient(i * out, in), quotient((i + 1) * out + in - 1, in)};
    const Index before = i + padding - (kernel - 1) * dilation;  // where the first window begins
    return {before <= 0 ? 0 : quotient(before + stride - 1, stride),
            least(out, quotient(i + padding, stride) + 1)};
  }

  /// Whether a taker's window has input i: with a dilation it may step over it.
  [[nodiscard]] STOWAGE_BODY bool takes(const Window& window, Index i) const {
    return window.step == 1 || (i - window.begin) % window.step == 0;
  }
};

/// The windows along the axes of a plane of three axes; axes that the tensor does not have are of
/// size 1.
struct Windows {
  WindowAxis first, second, third;

  [[nodiscard]] STOWAGE_BODY Index in_area() const { return first.in * second.in * third.in; }
  [[nodiscard]] STOWAGE_BODY Index out_area() const { return first.out * second.out * third.out; }

  [[nodiscard]] STOWAGE_BODY Place output(Index i) const {
    return place_of(i, first.out, second.out, third.out);
  }
  [[nodiscard]] STOWAGE_BODY Place input(Index i) const {
    return place_of(i, first.in, second.in, third.in);
  }
};

/// The inputs of one output, along all axes.
struct Box {
  Window first, second, third;
  Index second_in, third_in;

  STOWAGE_BODY Box(const Windows& windows, const Place& output)
      : Box(windows, windows.first.window(output.first), windows.second.window(output.second),
            windows.third.window(output.third)) {}
  STOWAGE_BODY Box(const Windows& windows, const Window& a, const Window& b, const Window& c)
      : first(a), second(b), third(c), second_in(windows.second.in), third_in(windows.third.in) {}

  [[nodiscard]] STOWAGE_BODY Index divisor() const {
    return first.divisor * second.divisor * third.divisor;
  }
  [[nodiscard]] STOWAGE_BODY Index offset(Index a, Index b, Index c) const {
    return (a * second_in + b) * third_in + c;
  }

  /// Calls visit(offset in the plane) in row-major order, as long as it returns true.
  template <class Visit>
  STOWAGE_BODY void each_until(Visit visit) const {
    for (Index a = first.begin; a < first.end; a += first.step) {
      for (Index b = second.begin; b < second.end; b += second.step) {
        const Index row = offset(a, b, 0);
        for (Index c = third.begin; c < third.end; c += third.step) {
          if (!visit(row + c)) return;
        }
      }
    }
  }

  /// Calls visit(offset in the plane) in row-major order, distributed over the threads.
  template <class Threads, class Visit>
  STOWAGE_BODY void each(const Threads& threads, Visit visit) const {
    if (threads.size() == 1) {
      return each_until([&](Index i) {
        visit(i);
        return true;
      });
    }
    const Index across = third.count(), rows = second.count();
    const Index all = first.count() * rows * across;
    for (Index i = threads.rank(); i < all; i += threads.size()) {
      const Index row = quotient(i, across), sheet = quotient(row, rows);
      visit(offset(first.begin + sheet * first.step,
                   second.begin + (row - sheet * rows) * second.step,
                   third.begin + (i - row * across) * third.step));
    }
  }
};

/// Calls visit(the output's offset in its plane, its box) for the outputs that take the input, in
/// row-major order.
template <class Visit>
STOWAGE_BODY void each_taker(const Windows& windows, const Place& input, Visit visit) {
  const WindowAxis &first = windows.first, &second = windows.second, &third = windows.third;
  const Takers a = first.takers(input.first), b = second.takers(input.second),
               c = third.takers(input.third);
  for (Index i = a.begin; i < a.end; ++i) {
    const Window of_first = first.window(i);
    if (!first.takes(of_first, input.first)) continue;
    for (Index j = b.begin; j < b.end; ++j) {
      const Window of_second = second.window(j);
      if (!second.takes(of_second, input.second)) continue;
      for (Index k = c.begin; k < c.end; ++k) {
        const Window of_third = third.window(k);
        if (!third.takes(of_third, input.third)) continue;
        visit((i * second.out + j) * third.out + k, Box(windows, of_first, of_second, of_third));
      }
    }
  }
}

}  // namespace stowage::body
