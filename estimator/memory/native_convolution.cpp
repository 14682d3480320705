#include "estimator/memory/native_convolution.hpp"

#include <algorithm>

namespace stowage {

namespace {

// As PyTorch has it, from timings of cuDNN 8.2.
bool is_faster_in_cudnn(const ConvolutionQuery& query) {
  const std::int64_t batch = query.x[0], channels = query.x[1], height = query.x[2],
                     width = query.x[3];
  const std::int64_t stride = query.stride[1], window = query.w[3];
  if (height == 1 && stride == 1) return true;
  if (query.w[2] != window || (window != 1 && window != 3 && window != 5)) return false;
  if (width < 7) return false;
  if (stride != 2) return stride == 1;
  if (batch == 1) return window > 1 || width <= 28;
  if (window == 1) return batch <= 16 && channels >= 128 && width <= 7;
  return channels >= 512 || (channels >= 256 && width >= 28);
}

bool takes_cudnn_for_half(const ConvolutionQuery& query) {
  const bool dilated = std::ranges::any_of(query.dilation, [](std::int64_t d) { return d != 1; });
  const bool even_steps = query.stride.front() == query.stride.back() || query.x[2] == 1;
  return query.type == DataType::float16 && query.x.size() == 4 && !dilated && even_steps &&
         query.x[1] >= 32 && is_faster_in_cudnn(query);
}

}  // namespace

bool is_native_in_pytorch(const ConvolutionQuery& query, bool transposed) {
  const std::int64_t channels = query.x[1];
  const bool is_depthwise =
      !transposed && query.groups == channels && query.groups > 1 && query.w[0] % channels == 0;
  return is_depthwise && query.layout == TensorLayout::contiguous && !takes_cudnn_for_half(query);
}

}  // namespace stowage
