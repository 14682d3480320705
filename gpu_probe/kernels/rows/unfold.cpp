// The windows of images as columns, and columns summed back into images.
#include "gpu_probe/kernels/bodies/unfold.hpp"

#include "gpu_probe/kernels/rows/formats.hpp"

namespace stowage::kernels {
namespace {

struct UnfoldedImage {
  body::UnfoldedAxis height, width;
};

UnfoldedImage unfolded(const KernelCall& call, const TensorArgument& image,
                       const TensorArgument& columns) {
  const auto kernel = list(call, "kernel", 2, 1), stride = list(call, "stride", 2, 1),
             padding = list(call, "padding", 2, 0), dilation = list(call, "dilation", 2, 1);
  require(image.shape.size() == 4 && columns.shape.size() == 3, "{} is no image, or {} no columns",
          shape_text(image.shape), shape_text(columns.shape));
  const auto axis = [&](std::size_t i) {
    const std::int64_t in = image.shape[2 + i];
    require(kernel[i] >= 1 && stride[i] >= 1 && dilation[i] >= 1 && padding[i] >= 0,
            "a window of {} by {}, {}, {}", kernel[i], stride[i], padding[i], dilation[i]);
    const std::int64_t span = in + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1;
    require(span >= 0, "a window of {} does not fit into {}", kernel[i], in);
    return body::UnfoldedAxis{in,        span / stride[i] + 1, kernel[i],
                              stride[i], padding[i],           dilation[i]};
  };
  const UnfoldedImage result{axis(0), axis(1)};
  require_shape("the columns", columns,
                {image.shape[0], image.shape[1] * kernel[0] * kernel[1],
                 result.height.out * result.width.out});
  return result;
}

}  // namespace

Launches unfold(const KernelCall& call, Arithmetic arithmetic) {
  const auto &x = call.reads[0], &y = call.writes[0];
  const UnfoldedImage image = unfolded(call, x, y);
  return {in_formats(x.type, arithmetic, [&]<class T, class Real>() {
    return each_index(
        body::Unfold<T, Real>{elements<T>(x), elements<T>(y), image.height, image.width},
        count(y.shape));
  })};
}

Launches fold(const KernelCall& call, Arithmetic arithmetic) {
  const auto &x = call.reads[0], &y = call.writes[0];
  const UnfoldedImage image = unfolded(call, y, x);
  return {in_formats(x.type, arithmetic, [&]<class T, class Real>() {
    return each_index(
        body::Fold<T, Real>{elements<T>(x), elements<T>(y), image.height, image.width},
        count(y.shape));
  })};
}

}  // namespace stowage::kernels
