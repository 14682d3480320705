// Which kernel PyTorch 2.15 takes for scaled_dot_product_attention on CUDA: the first of its order
// that can run the call (ATen/native/transformers/cuda/sdp_utils.cpp, with cuDNN 9.26 and CUDA 13
// as in the wheels). Flash comes first, then memory-efficient, then math; on compute capability
// 9.x and 10.x cuDNN comes before all. What it takes there is PyTorch 2.15's own choice, asked on
// pretended cards (tests/reference/attention_choices.py). Left out: limits on the batch (65,535),
// pointers' alignment, nested tensors, deterministic mode, and what a user has switched off.
#include <algorithm>
#include <cmath>
#include <string>

#include "estimator/catalogue/attention.hpp"

namespace stowage {

namespace {

struct Call {
  AttentionSizes sizes;
  DataType type = DataType::float32;
  bool has_bias = false, bias_needs_gradient = false;
  bool needs_gradient = false;
  bool causal = false;
  bool efficient_takes_groups = true;
  bool dense_rows = true;  // the last axis of q, k, v and of the mask is contiguous
  double dropout = 0;
  int major = 0, minor = 0;
};

bool is_half_precision(DataType type) {
  return type == DataType::float16 || type == DataType::bfloat16;
}

bool low_precision(const Call& call) {
  return call.major >= 8 ? is_half_precision(call.type) : call.type == DataType::float16;
}

bool cudnn_has_heads(const AttentionSizes& s, bool with_backward) {
  constexpr std::int64_t most_heads = 65'535;
  if (s.heads > most_heads) return false;
  const std::int64_t widest = std::max(s.features, s.value_features);
  if (!with_backward) return widest <= 256;
  return widest <= 128 || (s.features == 192 && s.value_features == 128) ||
         (s.features == 256 && s.value_features == 256);
}

bool cudnn_can(const Call& call) {
  const AttentionSizes& s = call.sizes;
  if (call.major < 8 || !low_precision(call) || call.bias_needs_gradient || !call.dense_rows) {
    return false;
  }
  // Its dropout knows sixteenths only.
  if (call.dropout * 16 != std::floor(call.dropout * 16)) return false;
  if (!cudnn_has_heads(s, call.needs_gradient)) return false;
  if (s.features % 8 != 0 || s.value_features % 8 != 0) return false;
  return s.keys != 1 && (call.dropout == 0 || s.queries != 1);
}

bool flash_can(const Call& call) {
  const AttentionSizes& s = call.sizes;
  if (call.major < 8 || !low_precision(call) || call.has_bias || !call.dense_rows) return false;
  if (s.features != s.value_features || s.features > 256) return false;
  if (call.causal && s.queries != s.keys) return false;
  const bool small_shared_memory = (call.major == 8 && call.minor >= 6) || call.major == 12;
  if (call.needs_gradient && small_shared_memory) {
    return s.features <= 192 || (call.dropout == 0 && s.features > 224);
  }
  return true;
}

bool efficient_can(const Call& call) {
  if (call.major < 5 || call.type == DataType::float64 || !call.dense_rows) return false;
  if (call.type == DataType::bfloat16 && call.major < 8) return false;
  if (call.sizes.groups > 1 && !call.efficient_takes_groups) return false;
  const bool half = is_half_precision(call.type);
  const bool tensor_cores = call.major >= 8 || (call.major == 7 && half);
  std::int64_t alignment = call.major >= 8 ? 4 : 1;
  if (tensor_cores) alignment = std::max<std::int64_t>(alignment, half ? 8 : 4);
  return call.sizes.features % alignment == 0 && call.sizes.value_features % alignment == 0;
}

Call call_of(const OperatorLowering& lowering) {
  const TensorView& q = lowering.input(0);
  const TensorView& k = lowering.input(1);
  const TensorView& v = lowering.input(2);
  const double capability = lowering.compute_capability();
  Call call{.sizes = attention_sizes(q.shape, k.shape, v.shape),
            .type = lowering.output_type().type,
            .has_bias = lowering.input_count() > 3,
            .needs_gradient = lowering.needs_gradient(),
            .causal = lowering.attributes().boolean("causal"),
            .efficient_takes_groups = lowering.efficient_takes_groups(),
            .dropout = attention_dropout(lowering),
            .major = static_cast<int>(capability),
            .minor = static_cast<int>(std::lround(capability * 10)) % 10};
  call.bias_needs_gradient = call.has_bias && lowering.input_needs_gradient(3);
  for (const TensorView* view : {&q, &k, &v}) {
    const bool converted = view->type != call.type && !is_dense(*view);  // makes it contiguous
    call.dense_rows = call.dense_rows && (converted || view->strides.back() == Affine(1));
  }
  if (call.has_bias && !copies_bias(lowering)) {
    call.dense_rows = call.dense_rows && lowering.input(3).strides.back() == Affine(1);
  }
  return call;
}

}  // namespace

AttentionImplementation chosen_attention(const OperatorLowering& lowering) {
  const std::string& wanted = lowering.attributes().text("implementation");
  if (wanted == "flash") return AttentionImplementation::flash;
  if (wanted == "efficient") return AttentionImplementation::efficient;
  if (wanted == "cudnn") return AttentionImplementation::cudnn;
  if (wanted == "math") return AttentionImplementation::math;
  if (!has_fused_shape(lowering)) return AttentionImplementation::math;  // check_tensor_shapes
  const Call call = call_of(lowering);
  const bool prefers_cudnn = call.major == 9 || call.major == 10;
  if (prefers_cudnn && cudnn_can(call)) return AttentionImplementation::cudnn;
  if (flash_can(call)) return AttentionImplementation::flash;
  if (efficient_can(call)) return AttentionImplementation::efficient;
  return AttentionImplementation::math;
}

}  // namespace stowage
