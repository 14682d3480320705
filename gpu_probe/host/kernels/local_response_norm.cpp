// Local response normalisation (Krizhevsky et al., 2012, section 3.3), as PyTorch defines it:
// y = x scale^-beta with scale = k + alpha / size * (sum of x^2 over `size` neighbouring channels),
// those outside counting as 0.
#include <algorithm>
#include <cmath>

#include "gpu_probe/host/kernels/kernels.hpp"

namespace stowage::host {
namespace {

/// x is [images, channels, area]; channel c sees channels [c - before, c + after].
struct Neighbours {
  std::int64_t images, channels, area, size, before, after;

  /// visit(offset, first neighbour's offset, how many) for every element, `below` and `above`
  /// being how far the neighbourhood reaches.
  template <typename Visit>
  void each(std::int64_t below, std::int64_t above, Visit visit) const {
    for (std::int64_t image = 0; image < images; ++image) {
      for (std::int64_t c = 0; c < channels; ++c) {
        const std::int64_t first = std::max<std::int64_t>(c - below, 0);
        const std::int64_t last = std::min(c + above, channels - 1);
        for (std::int64_t i = 0; i < area; ++i) {
          visit((image * channels + c) * area + i, (image * channels + first) * area + i,
                last - first + 1);
        }
      }
    }
  }
};

Neighbours neighbours_of(const KernelCall& call, const TensorArgument& x) {
  require(x.shape.size() >= 2, "{} has no channel axis", shape_text(x.shape));
  const std::int64_t size = integer(call, "size");
  require(size >= 1, "attribute 'size' is {}", size);
  return {x.shape[0], x.shape[1], count(x.shape, 2, x.shape.size()),
          size,       size / 2,   (size - 1) / 2};
}

}  // namespace

void local_response_norm_forward(const KernelCall& call) {
  require_same_shape("y", call.writes[0], call.reads[0]);
  require_same_shape("scale", call.writes[1], call.reads[0]);
  const Neighbours n = neighbours_of(call, call.reads[0]);
  const double share = real(call, "alpha") / static_cast<double>(n.size), beta = real(call, "beta"),
               k = real(call, "k");
  const float* x = floats(call.reads[0]);
  float *y = mutable_floats(call.writes[0]), *scales = mutable_floats(call.writes[1]);
  n.each(n.before, n.after, [&](std::int64_t i, std::int64_t first, std::int64_t channels) {
    double squares = 0;
    for (std::int64_t c = 0; c < channels; ++c) {
      squares += double{x[first + c * n.area]} * x[first + c * n.area];
    }
    const double scale = k + share * squares;
    scales[i] = static_cast<float>(scale);
    y[i] = static_cast<float>(x[i] * std::pow(scale, -beta));
  });
}

void local_response_norm_backward(const KernelCall& call) {
  for (std::size_t i = 1; i < 4; ++i) {
    require_same_shape(fmt::format("read {}", i), call.reads[i], call.reads[0]);
  }
  require_same_shape("dx", call.writes[0], call.reads[0]);
  const Neighbours n = neighbours_of(call, call.reads[0]);
  const double beta = real(call, "beta"),
               share = 2 * real(call, "alpha") * beta / static_cast<double>(n.size);
  const float *x = floats(call.reads[0]), *y = floats(call.reads[1]),
              *scales = floats(call.reads[2]), *dy = floats(call.reads[3]);
  float* dx = mutable_floats(call.writes[0]);
  // Channel c is among the neighbours of those that it would reach with the two sides exchanged.
  n.each(n.after, n.before, [&](std::int64_t i, std::int64_t first, std::int64_t channels) {
    double sum = 0;
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::int64_t at = first + c * n.area;
      sum += double{dy[at]} * y[at] / scales[at];
    }
    dx[i] = static_cast<float>(dy[i] * std::pow(double{scales[i]}, -beta) - share * x[i] * sum);
  });
}

}  // namespace stowage::host
