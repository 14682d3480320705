// Upsampling and downsampling to another spatial size, as torch.nn.functional.interpolate does it
// without antialiasing. Along each axis a position of the result is a weighted sum of a few
// positions of x, its taps.
#pragma once

#include "gpu_probe/kernels/bodies/floats.hpp"
#include "gpu_probe/kernels/bodies/mathematics.hpp"
#include "gpu_probe/kernels/bodies/place.hpp"

namespace stowage::body {

enum class ResamplingMode : Byte { nearest, linear, cubic };

/// The positions of x that one position of the result is the sum of, with their weights. Computed
/// in double, so that they are the same in every arithmetic.
struct Taps {
  Index at[4];
  double weight[4];
  int count;
};

struct ResampledAxis {
  Index in, out;
  ResamplingMode mode;
  bool align_corners;
  double scale;  ///< the factor of the extents that was given; 0: follows from the extents

  [[nodiscard]] STOWAGE_BODY Taps taps(Index to) const {
    const auto position = static_cast<double>(to);
    if (mode == ResamplingMode::nearest) {
      const Index at =
          scale == 0 ? quotient(to * in, out) : inside(static_cast<Index>(position / scale));
      return {{at}, {1}, 1};
    }
    double centre = 0;
    if (!align_corners) {
      centre = (position + 0.5) * step() - 0.5;
    } else if (out > 1) {
      centre = position * static_cast<double>(in - 1) / static_cast<double>(out - 1);
    }
    if (mode == ResamplingMode::linear) {
      centre = most(centre, 0.0);
      const Index first = inside(static_cast<Index>(centre));
      const double share = centre - static_cast<double>(first);
      return {{first, inside(first + 1)}, {1 - share, share}, 2};
    }
    const auto middle = static_cast<Index>(body::floor(centre));
    Taps taps{{}, {}, 4};
    for (int i = 0; i < 4; ++i) {
      const Index at = middle - 1 + i;
      taps.at[i] = inside(at);
      taps.weight[i] = cubic_weight(body::fabs(centre - static_cast<double>(at)));
    }
    return taps;
  }

  /// All positions of the result that have `at` as a tap are within [begin, end).
  struct Takers {
    Index begin, end;
  };
  [[nodiscard]] STOWAGE_BODY Takers takers(Index at) const {
    constexpr Index reach = 3;  // a tap is at most two positions from the centre
    double apart = 0;           // positions of the result for each position of x
    if (!align_corners || mode == ResamplingMode::nearest) {
      apart = 1 / step();
    } else if (in > 1) {
      apart = static_cast<double>(out - 1) / static_cast<double>(in - 1);
    }
    // At both ends the positions outside of x count as well.
    const double begin = at == 0 ? 0 : static_cast<double>(at - reach) * apart - 1;
    const double end =
        at == in - 1 ? static_cast<double>(out) : static_cast<double>(at + reach) * apart + 2;
    const auto last = static_cast<double>(out);
    return {static_cast<Index>(least(most(begin, 0.0), last)),
            static_cast<Index>(least(most(end, 0.0), last))};
  }

 private:
  /// Positions of x for each position of the result.
  [[nodiscard]] STOWAGE_BODY double step() const {
    return scale == 0 ? static_cast<double>(in) / static_cast<double>(out) : 1 / scale;
  }
  [[nodiscard]] STOWAGE_BODY Index inside(Index at) const {
    return least(most(at, Index(0)), in - 1);
  }
  /// Keys's cubic kernel with a = -3/4, as in PyTorch; `d` is at least 0.
  [[nodiscard]] STOWAGE_BODY static double cubic_weight(double d) {
    constexpr double a = -0.75;
    if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
    return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
  }
};

/// The axes of a plane of three axes; axes that the tensor does not have are of size 1.
struct ResampledAxes {
  ResampledAxis first, second, third;
};

/// Forward. The index is an element of y.
template <class T, class Real>
struct UpsampleForward {
  const T* x;
  T* y;
  ResampledAxes axes;

  STOWAGE_BODY void operator()(Index i) const {
    const ResampledAxis &first = axes.first, &second = axes.second, &third = axes.third;
    const Place to = place_of(i, first.out, second.out, third.out);
    const Taps a = first.taps(to.first), b = second.taps(to.second), c = third.taps(to.third);
    Real sum = 0;
    for (int p = 0; p < a.count; ++p) {
      for (int q = 0; q < b.count; ++q) {
        const Index row = ((to.plane * first.in + a.at[p]) * second.in + b.at[q]) * third.in;
        for (int r = 0; r < c.count; ++r) {
          const double weight = a.weight[p] * b.weight[q] * c.weight[r];
          sum += static_cast<Real>(weight) * load<Real>(x, row + c.at[r]);
        }
      }
    }
    store(y, i, sum);
  }
};

/// Backward. The index is an element of dx.
template <class T, class Real>
struct UpsampleBackward {
  const T* dy;
  T* dx;
  ResampledAxes axes;

  STOWAGE_BODY void operator()(Index i) const {
    const ResampledAxis &first = axes.first, &second = axes.second, &third = axes.third;
    const Place at = place_of(i, first.in, second.in, third.in);
    Real sum = 0;
    each(first, at.first, 0, 1, [&](Index a, double of_a) {
      each(second, at.second, 0, of_a, [&](Index b, double of_b) {
        const Index row = ((at.plane * first.out + a) * second.out + b) * third.out;
        each(third, at.third, row, of_b, [&](Index to, double weight) {
          sum += static_cast<Real>(weight) * load<Real>(dy, to);
        });
      });
    });
    store(dx, i, sum);
  }

 private:
  /// Calls visit(offset + position, so_far times the weight) for each position of the result that
  /// has `at` as a tap, once for each such tap.
  template <class Visit>
  STOWAGE_BODY static void each(const ResampledAxis& axis, Index at, Index offset, double so_far,
                                Visit visit) {
    const ResampledAxis::Takers takers = axis.takers(at);
    for (Index to = takers.begin; to < takers.end; ++to) {
      const Taps taps = axis.taps(to);
      for (int i = 0; i < taps.count; ++i) {
        if (taps.at[i] == at) visit(offset + to, so_far * taps.weight[i]);
      }
    }
  }
};

}  // namespace stowage::body
