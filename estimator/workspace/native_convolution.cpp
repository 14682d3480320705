#include "estimator/workspace/native_convolution.hpp"

#include <algorithm>

namespace stowage {

namespace {

// PyTorch's table, from timings of cuDNN 8.2.
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

bool is_all(const std::vector<std::int64_t>& values, std::int64_t wanted) {
  return std::ranges::all_of(values, [&](std::int64_t value) { return value == wanted; });
}

}  // namespace

bool is_native_in_pytorch(const ConvolutionQuery& query, bool transposed) {
  const std::int64_t channels = query.x[1];
  const bool is_depthwise =
      !transposed && query.groups == channels && query.groups > 1 && query.w[0] % channels == 0;
  return is_depthwise && query.layout == TensorLayout::contiguous && !takes_cudnn_for_half(query);
}

bool is_unfolded_in_pytorch(const ConvolutionQuery& query, double compute_capability) {
  return query.type == DataType::bfloat16 && compute_capability < 8;
}

Bytes unfolding_bytes(const ConvolutionQuery& query, bool transposed) {
  const bool is_image = query.x.size() == 4;
  const std::vector<std::int64_t> window(query.w.begin() + 2, query.w.end());
  const bool is_the_sample = is_image && !transposed && is_all(window, 1) &&
                             is_all(query.stride, 1) && is_all(query.padding, 0);
  Bytes columns(is_the_sample ? 0 : element_size(query.type));
  columns = columns * (query.x[1] / query.groups);
  for (const std::int64_t extent : window) columns = columns * extent;
  for (std::size_t i = 2; i < query.y.size(); ++i) columns = columns * query.y[i];
  if (query.groups == 1) return columns;
  const Bytes x = bytes_of(query.x, query.type), w = bytes_of(query.w, query.type),
              y = bytes_of(query.y, query.type);
  const Bytes result = bytes_of(result_shape(query), query.type);
  const Bytes operands = x + w + y - result;
  return columns + result + Bytes(operands.count() / query.groups);
}

}  // namespace stowage
