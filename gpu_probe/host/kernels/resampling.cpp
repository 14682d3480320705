// Upsampling (and downsampling) to another spatial size, as torch.nn.functional.interpolate does
// it without antialiasing: each position of the result is a weighted sum of a few positions of x,
// axis by axis.
#include <algorithm>
#include <cmath>

#include "gpu_probe/host/kernels/kernels.hpp"

namespace stowage::host {
namespace {

struct Tap {
  std::int64_t at;  // along the axis of x
  double weight;
};
using Taps = std::vector<Tap>;

enum class Mode { nearest, linear, cubic };

Mode mode_of(const KernelCall& call) {
  const std::string mode = text(call, "mode", "nearest");
  if (mode == "nearest") return Mode::nearest;
  if (mode == "linear") return Mode::linear;
  require(mode == "cubic", "attribute 'mode' is '{}'", mode);
  return Mode::cubic;
}

/// Keys' kernel with a = -3/4, which PyTorch takes; `distance` is at least 0.
double cubic_weight(double distance) {
  constexpr double a = -0.75;
  const double d = distance;
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

/// How positions of the result are found in x.
struct Rule {
  Mode mode;
  bool align_corners;
  double scale;  ///< of the extents, where a number was given; 0: the extents say it
};

/// What position `to` of `out` is made of, of `in` positions.
Taps taps_of(std::int64_t to, std::int64_t in, std::int64_t out, const Rule& rule) {
  const auto inside = [in](std::int64_t at) { return std::clamp<std::int64_t>(at, 0, in - 1); };
  const auto position = static_cast<double>(to);
  if (rule.mode == Mode::nearest) {
    if (rule.scale == 0) return {{to * in / out, 1}};
    return {{inside(static_cast<std::int64_t>(position / rule.scale)), 1}};
  }
  double centre = 0;
  if (!rule.align_corners) {
    const double step =
        rule.scale == 0 ? static_cast<double>(in) / static_cast<double>(out) : 1 / rule.scale;
    centre = (position + 0.5) * step - 0.5;
  } else if (out > 1) {
    centre = position * static_cast<double>(in - 1) / static_cast<double>(out - 1);
  }
  if (rule.mode == Mode::linear) {
    centre = std::max(centre, 0.0);
    const std::int64_t first = inside(static_cast<std::int64_t>(centre));
    const double share = centre - static_cast<double>(first);
    return {{first, 1 - share}, {inside(first + 1), share}};
  }
  const auto middle = static_cast<std::int64_t>(std::floor(centre));
  Taps taps;
  for (std::int64_t at = middle - 1; at <= middle + 2; ++at) {
    taps.push_back({inside(at), cubic_weight(std::abs(centre - static_cast<double>(at)))});
  }
  return taps;
}

/// From x [n, channels, in...] to y [n, channels, out...].
struct Resampling {
  std::int64_t planes;
  Sizes in, out;
  std::vector<std::vector<Taps>> taps;  // by axis and position of the result
};

Resampling resampling(const KernelCall& call, const TensorArgument& x, const TensorArgument& y) {
  require(x.shape.size() >= 3 && x.shape.size() == y.shape.size() &&
              std::equal(x.shape.begin(), x.shape.begin() + 2, y.shape.begin()),
          "input {} and output {} do not belong together", shape_text(x.shape),
          shape_text(y.shape));
  require(count(x.shape) > 0, "{} is empty", shape_text(x.shape));
  const Rule rule{mode_of(call), boolean(call, "align_corners", false), real(call, "scale", 0)};
  require(rule.scale >= 0, "attribute 'scale' is {}", rule.scale);
  Resampling r{.planes = x.shape[0] * x.shape[1],
               .in = Sizes(x.shape.begin() + 2, x.shape.end()),
               .out = Sizes(y.shape.begin() + 2, y.shape.end())};
  for (std::size_t axis = 0; axis < r.in.size(); ++axis) {
    auto& taps = r.taps.emplace_back();
    for (std::int64_t to = 0; to < r.out[axis]; ++to) {
      taps.push_back(taps_of(to, r.in[axis], r.out[axis], rule));
    }
  }
  return r;
}

/// visit(offset in y's plane, offset in x's, weight) for every pair that has one.
template <typename Visit>
void each_pair(const Resampling& r, std::size_t axis, std::int64_t to, std::int64_t from,
               double weight, Visit& visit) {
  if (axis == r.taps.size()) return visit(to, from, weight);
  for (std::int64_t position = 0; position < r.out[axis]; ++position) {
    for (const Tap& tap : r.taps[axis][static_cast<std::size_t>(position)]) {
      each_pair(r, axis + 1, to * r.out[axis] + position, from * r.in[axis] + tap.at,
                weight * tap.weight, visit);
    }
  }
}

/// Each plane's sums in double, then rounded.
template <typename Add>
void sum_planes(const Resampling& r, std::int64_t area, float* result, Add add) {
  std::vector<double> sums(static_cast<std::size_t>(area));
  for (std::int64_t plane = 0; plane < r.planes; ++plane) {
    std::fill(sums.begin(), sums.end(), 0);
    auto visit = [&](std::int64_t to, std::int64_t from, double weight) {
      add(plane, sums.data(), to, from, weight);
    };
    each_pair(r, 0, 0, 0, 1, visit);
    std::transform(sums.begin(), sums.end(), result + plane * area,
                   [](double sum) { return static_cast<float>(sum); });
  }
}

}  // namespace

void upsample_forward(const KernelCall& call) {
  const Resampling r = resampling(call, call.reads[0], call.writes[0]);
  const std::int64_t area = count(r.in);
  const float* x = floats(call.reads[0]);
  sum_planes(r, count(r.out), mutable_floats(call.writes[0]),
             [&](std::int64_t plane, double* y, std::int64_t to, std::int64_t from, double weight) {
               y[to] += weight * x[plane * area + from];
             });
}

void upsample_backward(const KernelCall& call) {
  const Resampling r = resampling(call, call.writes[0], call.reads[0]);
  const std::int64_t area = count(r.out);
  const float* dy = floats(call.reads[0]);
  sum_planes(r, count(r.in), mutable_floats(call.writes[0]),
             [&](std::int64_t plane, double* dx, std::int64_t to, std::int64_t from,
                 double weight) { dx[from] += weight * dy[plane * area + to]; });
}

}  // namespace stowage::host
