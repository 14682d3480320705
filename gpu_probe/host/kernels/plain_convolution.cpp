#include "gpu_probe/host/kernels/plain_convolution.hpp"

#include <algorithm>
#include <array>

namespace stowage::host {
namespace {

constexpr std::size_t most_axes = 3;

struct Axis {
  std::int64_t x = 1, w = 1, y = 1;  // extents
  std::int64_t stride = 1, dilation = 1, padding = 0;

  /// The position in x of the window's element `k` for the output position `at`; outside of x it is
  /// padding.
  [[nodiscard]] std::int64_t place(std::int64_t at, std::int64_t k) const {
    return at * stride + k * dilation - padding;
  }
};

/// Three axes. If the convolution has fewer, the first ones have extent 1.
std::array<Axis, most_axes> axes_of(const PlainConvolution& c) {
  std::array<Axis, most_axes> axes;
  const std::size_t spatial = c.x.size() - 2;
  for (std::size_t i = 0; i < spatial; ++i) {
    axes[most_axes - spatial + i] = {c.x[i + 2],  c.w[i + 2],    c.y[i + 2],
                                     c.stride[i], c.dilation[i], c.padding[i]};
  }
  return axes;
}

/// The factors and the sum for one plane of x, of w and of y.
struct Planes {
  double *x, *w, *y;
};

/// Visits every pair of an element of x and one of w, with the element of y to which their product
/// belongs.
template <Computed computed>
void convolve_planes(const std::array<Axis, most_axes>& axes, const Planes& p) {
  const auto& [d, h, v] = axes;
  const auto inside = [](std::int64_t at, std::int64_t size) { return at >= 0 && at < size; };
  for (std::int64_t kd = 0; kd < d.w; ++kd) {
    for (std::int64_t kh = 0; kh < h.w; ++kh) {
      for (std::int64_t kv = 0; kv < v.w; ++kv) {
        double& w = p.w[(kd * h.w + kh) * v.w + kv];
        for (std::int64_t yd = 0; yd < d.y; ++yd) {
          const std::int64_t xd = d.place(yd, kd);
          if (!inside(xd, d.x)) continue;
          for (std::int64_t yh = 0; yh < h.y; ++yh) {
            const std::int64_t xh = h.place(yh, kh);
            if (!inside(xh, h.x)) continue;
            double* const x_row = p.x + (xd * h.x + xh) * v.x;
            double* const y_row = p.y + (yd * h.y + yh) * v.y;
            for (std::int64_t yv = 0; yv < v.y; ++yv) {
              const std::int64_t xv = v.place(yv, kv);
              if (!inside(xv, v.x)) continue;
              if constexpr (computed == Computed::y) y_row[yv] += x_row[xv] * w;
              if constexpr (computed == Computed::x) x_row[xv] += y_row[yv] * w;
              if constexpr (computed == Computed::w) w += x_row[xv] * y_row[yv];
            }
          }
        }
      }
    }
  }
}

template <Computed computed>
void convolve(const PlainConvolution& c, double* x, double* w, double* y) {
  const auto axes = axes_of(c);
  const std::int64_t area_x = count(c.x, 2, c.x.size()), area_w = count(c.w, 2, c.w.size()),
                     area_y = count(c.y, 2, c.y.size());
  const std::int64_t in = c.w[1], out = c.w[0] / c.groups;  // channels of a group
  for (std::int64_t image = 0; image < c.x[0]; ++image) {
    for (std::int64_t o = 0; o < c.w[0]; ++o) {
      for (std::int64_t i = 0; i < in; ++i) {
        const std::int64_t channel = o / out * in + i;
        convolve_planes<computed>(
            axes, {x + (image * c.x[1] + channel) * area_x, w + (o * in + i) * area_w,
                   y + (image * c.y[1] + o) * area_y});
      }
    }
  }
}

}  // namespace

void plain_convolution(Computed computed, const PlainConvolution& c, double* x, double* w,
                       double* y) {
  switch (computed) {
    case Computed::y:
      std::fill_n(y, count(c.y), 0.0);
      return convolve<Computed::y>(c, x, w, y);
    case Computed::x:
      std::fill_n(x, count(c.x), 0.0);
      return convolve<Computed::x>(c, x, w, y);
    case Computed::w:
      std::fill_n(w, count(c.w), 0.0);
      return convolve<Computed::w>(c, x, w, y);
  }
}

}  // namespace stowage::host
