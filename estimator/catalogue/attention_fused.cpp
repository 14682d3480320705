// PyTorch's fused attention: flash, memory-efficient and cuDNN, forward and backward.
//
// Padding of heads and of the mask: ATen/native/transformers/attention.cpp, PyTorch 2.15. What a
// kernel saves and returns is checked against FakeTensor; what it allocates within itself (class
// workspace) is by formula (pytorch/attention.hpp).
#include <string>

#include "estimator/catalogue/attention.hpp"

namespace stowage {

namespace {

using Implementation = AttentionImplementation;

constexpr std::int64_t logsumexp_alignment = 32;  // kAlignLSE
constexpr std::int64_t flash_head_alignment = 8;
constexpr std::int64_t bias_alignment = 8;
constexpr std::int64_t bias_gradient_alignment = 16;

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

TensorView heads_and_queries_swapped(const TensorView& view) {
  const std::vector<std::int64_t> swap{0, 2, 1, 3};
  return permuted(view, swap);
}

TensorView head_padded(OperatorLowering& lowering, const TensorView& view, std::int64_t last,
                       std::string_view name, StorageClass storage_class) {
  Shape shape = view.shape;
  shape.back() = last;
  TensorView result = lowering.new_tensor(name, shape, view.type, storage_class);
  lowering.emit(Kernel::pad, name, {view}, {result});
  return result;
}

/// The mask as the memory-efficient kernel wants it: rows aligned (padded to the next multiple of
/// 8, of which the padding is cut off again), and seen at the scores' full shape.
TensorView aligned_bias(OperatorLowering& lowering, const TensorView& bias, const Shape& scores) {
  bool aligned = bias.strides.back() == Affine(1);
  for (std::size_t i = 0; i + 1 < bias.strides.size(); ++i) {
    const Affine stride = bias.strides[i];
    aligned =
        aligned && stride.constant % bias_alignment == 0 && stride.slope % bias_alignment == 0;
  }
  TensorView rows = bias;
  if (!aligned) {
    const std::int64_t length = bias.shape.back().constant;
    const TensorView wider =
        head_padded(lowering, bias, length + bias_alignment - length % bias_alignment,
                    "padded_bias", StorageClass::activation);
    rows = sliced(wider, wider.shape.size() - 1, 0, length);
  }
  TensorView result = rows;
  result.is_view = true;
  result.shape = scores;
  result.strides.assign(scores.size(), 0);
  const std::size_t lead = scores.size() - rows.shape.size();
  for (std::size_t i = 0; i < rows.shape.size(); ++i) {
    if (rows.shape[i] == scores[lead + i]) result.strides[lead + i] = rows.strides[i];
  }
  return result;
}

/// The attribute `implementation` as it was chosen.
Attributes named(Implementation implementation) {
  Attributes attributes;
  attributes.set("implementation", std::string(to_string(implementation)));
  return attributes;
}

Shape score_shape(const AttentionSizes& s) { return {s.batch, s.heads, s.queries, s.keys}; }

/// The statistics that the kernel hands to its backward, output after output.
void make_statistics(OperatorLowering& lowering, Implementation implementation,
                     const AttentionSizes& s, std::vector<TensorView>& writes) {
  const bool flash = implementation == Implementation::flash;
  const bool training = lowering.needs_gradient();
  if (!training && implementation == Implementation::cudnn) return;
  Shape rows{s.batch, s.heads, s.queries};
  if (implementation == Implementation::efficient) {
    rows.back() = training ? round_up(s.queries, logsumexp_alignment) : 0;
  }
  writes.push_back(
      lowering.new_tensor("logsumexp", rows, DataType::float32, StorageClass::saved_auxiliary));
  // The state of the random numbers; flash keeps both words in its first tensor. The
  // memory-efficient kernel has them on the GPU while a graph is captured and else on the host; for
  // FakeTensor they are always on the GPU, 16 bytes.
  const Shape words = flash ? Shape{2} : Shape{};
  writes.push_back(
      lowering.new_tensor("philox_seed", words, DataType::int64, StorageClass::saved_auxiliary));
  writes.push_back(
      lowering.new_tensor("philox_offset", {}, DataType::int64, StorageClass::saved_auxiliary));
}

std::vector<StorageId> scratch_list(OperatorLowering& lowering, Affine bytes) {
  if (bytes == Affine(0)) return {};
  return {
      lowering.new_tensor("workspace", {bytes}, DataType::uint8, StorageClass::workspace).storage};
}

bool has_no_heads(const OperatorLowering& lowering) {
  return lowering.output_type().shape.size() == 3;
}

/// The strides of [1, N, length, features] for [N, length, features], with the length outermost.
Shape length_first_strides(const Shape& shape) {
  return {shape.back(), shape[0] * shape.back(), 1};
}

/// As make_attention_output, without heads.
TensorView make_headless_output(OperatorLowering& lowering, Implementation implementation,
                                const TensorView& q, const TensorView& v) {
  const Shape& shape = lowering.output_type().shape;
  const TensorView like = without_head_axis(q);
  if (v.shape[3] == shape[2]) {
    TensorView out = lowering.new_output();
    out.strides = implementation == Implementation::efficient ? length_first_strides(shape)
                                                              : dense_strides(shape, like.strides);
    lowering.set_output(0, out);
    return with_head_axis(out);
  }
  Shape wide = shape;
  wide[2] = v.shape[3];
  TensorView out = lowering.new_tensor("padded_output", wide, q.type, StorageClass::activation);
  out.strides = dense_strides(out.shape, like.strides);
  lowering.set_output(0, sliced(out, 2, 0, shape[2]));
  return with_head_axis(out);
}

/// The storage of the output, laid out as the kernel makes it.
TensorView make_attention_output(OperatorLowering& lowering, Implementation implementation,
                                 const TensorView& q, const TensorView& v) {
  if (has_no_heads(lowering)) return make_headless_output(lowering, implementation, q, v);
  const Shape& shape = lowering.output_type().shape;
  if (implementation == Implementation::efficient) {
    const TensorView out = lowering.new_output();
    const TensorView stored =
        contiguous_view(out.storage, {shape[0], shape[2], shape[1], shape[3]}, out.type);
    lowering.set_output(0, heads_and_queries_swapped(stored));
    return lowering.output();
  }
  if (v.shape[3] == shape[3]) return lowering.new_output_like(q);
  Shape wide = shape;
  wide[3] = v.shape[3];
  TensorView out = lowering.new_tensor("padded_output", wide, q.type, StorageClass::activation);
  out.strides = dense_strides(out.shape, q.strides);
  lowering.set_output(0, sliced(out, 3, 0, shape[3]));
  return out;
}

/// A gradient that the kernel makes for an operand of that view.
Shape gradient_strides(const OperatorLowering& lowering, Implementation implementation,
                       const TensorView& operand) {
  const Shape& n = operand.shape;
  if (implementation != Implementation::efficient) return dense_strides(n, operand.strides);
  if (has_no_heads(lowering)) {
    TensorView lengthwise = without_head_axis(operand);
    lengthwise.strides = length_first_strides(lengthwise.shape);
    return with_head_axis(lengthwise).strides;
  }
  return heads_and_queries_swapped(
             contiguous_view(StorageId{}, {n[0], n[2], n[1], n[3]}, operand.type))
      .strides;
}

/// Cuts the padding of a head off a gradient, in a tensor of its own.
TensorView cut(OperatorLowering& lowering, const TensorView& gradient, std::int64_t features,
               const std::string& name) {
  if (gradient.shape[3] == Affine(features)) return gradient;
  Shape shape = gradient.shape;
  shape[3] = features;
  TensorView result =
      lowering.new_tensor("grad_" + name, shape, gradient.type, StorageClass::activation_gradient);
  lowering.emit(Kernel::slice, "backward." + name, {gradient}, {result});
  return result;
}

/// The mask's gradient from the kernel's, which has the scores' shape with rows padded to 16.
TensorView bias_gradient(OperatorLowering& lowering, const TensorView& whole) {
  const bool lacks_heads = lowering.input(3).shape.size() == 3;
  const TensorView bias = with_head_axis(lowering.input(3));
  const bool was_padded = lowering.has_saved("padded_bias");
  const Shape& scores = lowering.saved(was_padded ? "padded_bias" : "bias").shape;
  TensorView gradient = sliced(whole, 3, 0, scores[3]);
  if (bias.shape != scores) {
    const TensorView sum = lowering.new_tensor("grad_bias.sum", bias.shape, whole.type,
                                               StorageClass::activation_gradient);
    lowering.emit(Kernel::sum_to_shape, "backward.bias", {gradient}, {sum},
                  {.flops = element_count(scores)});
    gradient = sum;
  }
  const auto as_given = [&](const TensorView& view) {
    return lacks_heads ? without_head_axis(view) : view;
  };
  if (!was_padded) return as_given(gradient);
  const std::int64_t length = bias.shape.back().constant;
  const TensorView wide =
      head_padded(lowering, gradient, length + bias_alignment - length % bias_alignment,
                  "grad_bias.padded", StorageClass::activation_gradient);
  const TensorView result = lowering.new_tensor("grad_bias.cut", bias.shape, whole.type,
                                                StorageClass::activation_gradient);
  lowering.emit(Kernel::slice, "backward.bias.cut", {wide}, {result});
  return as_given(result);
}

constexpr std::string_view saved_roles[] = {"query",         "key",       "value",
                                            "output",        "logsumexp", "philox_seed",
                                            "philox_offset", "bias",      "padded_bias"};

}  // namespace

/// Pads the heads for flash and the bias for the memory-efficient kernel, makes the output and the
/// statistics, emits the kernel, and saves what its backward pass reads.
void forward_fused_attention(OperatorLowering& lowering, AttentionImplementation implementation,
                             const AttentionOperands& operands) {
  TensorView q = operands.query, k = operands.key, v = operands.value;
  const AttentionSizes unpadded = attention_sizes(q.shape, k.shape, v.shape);
  const std::int64_t features = round_up(unpadded.features, flash_head_alignment);
  if (implementation == Implementation::flash && features != unpadded.features) {
    q = head_padded(lowering, q, features, "padded_query", StorageClass::activation);
    k = head_padded(lowering, k, features, "padded_key", StorageClass::activation);
    v = head_padded(lowering, v, features, "padded_value", StorageClass::activation);
  }
  const AttentionSizes s = attention_sizes(q.shape, k.shape, v.shape);
  std::vector<TensorView> reads{q, k, v};
  if (operands.bias) {
    reads.push_back(implementation == Implementation::efficient
                        ? aligned_bias(lowering, *operands.bias, score_shape(s))
                        : *operands.bias);
  }
  // Converted and padded operands are variables until the result is cut.
  std::vector<StorageId> holds = operands.held;
  holds.insert(holds.end(), {operands.query.storage, operands.key.storage, operands.value.storage,
                             q.storage, k.storage, v.storage});
  const TensorView out = make_attention_output(lowering, implementation, q, v);
  std::vector<TensorView> writes{out};
  make_statistics(lowering, implementation, s, writes);
  lowering.emit(
      Kernel::attention_forward, "forward", reads, writes,
      {.attributes = named(implementation),
       .temporaries = scratch_list(lowering, attention_scratch(implementation, s, q.type)),
       .holds = holds,
       .flops = fused_attention_flops(s)});
  lowering.save("query", q);
  lowering.save("key", k);
  lowering.save("value", v);
  lowering.save("output", out);
  if (writes.size() > 1) {
    lowering.save("logsumexp", writes[1]);
    lowering.save("philox_seed", writes[2]);
    lowering.save("philox_offset", writes[3]);
  }
  if (operands.bias) {
    const bool same = reads[3].storage == operands.bias->storage;
    lowering.save(same ? "bias" : "padded_bias", reads[3]);
  }
}

/// Pads the gradient of the result as forward padded the value, makes the operands' gradients in
/// the layouts that the kernel chooses, emits the kernel, and cuts the padding off the gradients
/// again.
AttentionOperands backward_fused_attention(OperatorLowering& lowering,
                                           AttentionImplementation implementation) {
  const TensorView q = lowering.saved("query"), k = lowering.saved("key"),
                   v = lowering.saved("value"), out = lowering.saved("output");
  const AttentionSizes s = attention_sizes(q.shape, k.shape, v.shape);
  TensorView dy = with_head_axis(lowering.output_gradient());
  const std::int64_t value_features = dy.shape[3].constant;
  if (value_features != s.value_features) {
    dy = head_padded(lowering, dy, s.value_features, "grad_padded_output",
                     StorageClass::activation_gradient);
  }
  std::vector<TensorView> gradients;
  constexpr std::string_view names[] = {"grad_query", "grad_key", "grad_value"};
  for (std::size_t i = 0; i < 3; ++i) {
    const TensorView& operand = i == 0 ? q : i == 1 ? k : v;
    TensorView gradient = lowering.new_tensor(names[i], operand.shape, operand.type,
                                              StorageClass::activation_gradient);
    gradient.strides = gradient_strides(lowering, implementation, operand);
    gradients.push_back(gradient);
  }
  std::vector<TensorView> writes = gradients;
  const bool wants_bias = lowering.input_count() > 3 && lowering.input_needs_gradient(3);
  if (wants_bias) {
    Shape shape = score_shape(s);
    shape[3] = round_up(s.keys, bias_gradient_alignment);
    writes.push_back(
        lowering.new_tensor("grad_bias", shape, q.type, StorageClass::activation_gradient));
  }
  lowering.hold_by_hand();
  std::vector<StorageId> holds{dy.storage};
  for (const std::string_view role : saved_roles) {
    if (lowering.has_saved(role)) holds.push_back(lowering.saved(role).storage);
  }
  std::vector<TensorView> reads{dy, q, k, v, out, lowering.saved("logsumexp")};
  if (lowering.has_saved("bias")) reads.push_back(lowering.saved("bias"));
  lowering.emit(Kernel::attention_backward, "backward", reads, writes,
                {.attributes = named(implementation),
                 .temporaries = scratch_list(
                     lowering, attention_backward_scratch(
                                   implementation, lowering.compute_capability(), s, dy, out)),
                 .holds = holds,
                 .flops = fused_attention_backward_flops(s)});
  AttentionOperands result;
  if (wants_bias) result.bias = bias_gradient(lowering, writes[3]);
  const std::int64_t features = lowering.input(0).shape.back().constant;
  result.value = cut(lowering, gradients[2], value_features, "value.cut");
  result.key = cut(lowering, gradients[1], features, "key.cut");
  result.query = cut(lowering, gradients[0], features, "query.cut");
  if (has_no_heads(lowering)) {
    for (TensorView* const gradient : {&result.query, &result.key, &result.value}) {
      *gradient = without_head_axis(*gradient);
    }
  }
  return result;
}

}  // namespace stowage
