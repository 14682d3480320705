// Upsampling and downsampling over one to three spatial axes.
#include "gpu_probe/kernels/bodies/resampling.hpp"

#include <algorithm>
#include <array>

#include "gpu_probe/kernels/rows/formats.hpp"

namespace stowage::kernels {
namespace {

using body::ResampledAxes;
using body::ResampledAxis;
using body::ResamplingMode;

ResamplingMode mode_of_resampling(const KernelCall& call) {
  const std::string mode = text(call, "mode", "nearest");
  if (mode == "nearest") return ResamplingMode::nearest;
  if (mode == "linear") return ResamplingMode::linear;
  require(mode == "cubic", "attribute 'mode' is '{}'", mode);
  return ResamplingMode::cubic;
}

ResampledAxes resampled(const KernelCall& call, const TensorArgument& x, const TensorArgument& y) {
  require(x.shape.size() >= 3 && x.shape.size() == y.shape.size() &&
              std::equal(x.shape.begin(), x.shape.begin() + 2, y.shape.begin()),
          "input {} and output {} do not belong together", shape_text(x.shape),
          shape_text(y.shape));
  require(x.shape.size() <= 5, "{} has more than three spatial axes", shape_text(x.shape));
  require(count(x.shape) > 0, "{} is empty", shape_text(x.shape));
  const ResamplingMode mode = mode_of_resampling(call);
  const bool align_corners = boolean(call, "align_corners", false);
  const double scale = real(call, "scale", 0);
  require(scale >= 0, "attribute 'scale' is {}", scale);
  constexpr ResampledAxis none{1, 1, ResamplingMode::nearest, false, 0};
  std::array<ResampledAxis, 3> axes{none, none, none};
  const std::size_t lacking = 5 - x.shape.size();
  for (std::size_t i = lacking; i < 3; ++i) {
    const std::size_t axis = i - lacking + 2;
    axes[i] = {x.shape[axis], y.shape[axis], mode, align_corners, scale};
  }
  return {axes[0], axes[1], axes[2]};
}

}  // namespace

Launches upsample_forward(const KernelCall& call, Arithmetic arithmetic) {
  const auto &x = call.reads[0], &y = call.writes[0];
  const ResampledAxes axes = resampled(call, x, y);
  return {in_formats(x.type, arithmetic, [&]<class T, class Real>() {
    return each_index(body::UpsampleForward<T, Real>{elements<T>(x), elements<T>(y), axes},
                      count(y.shape));
  })};
}

Launches upsample_backward(const KernelCall& call, Arithmetic arithmetic) {
  const auto &dy = call.reads[0], &dx = call.writes[0];
  const ResampledAxes axes = resampled(call, dx, dy);
  return {in_formats(dy.type, arithmetic, [&]<class T, class Real>() {
    return each_index(body::UpsampleBackward<T, Real>{elements<T>(dy), elements<T>(dx), axes},
                      count(dx.shape));
  })};
}

}  // namespace stowage::kernels
