// PyTorch's attention in tensor operations (ATen's _scaled_dot_product_attention_math, PyTorch
// 2.15): query and key are both scaled by the root of the factor, 16-bit operands are computed in
// float32, and what autograd keeps are the operands of the two batched products, copied where their
// axes do not merge, the probabilities and dropout's mask and result.
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "estimator/catalogue/attention.hpp"
#include "estimator/catalogue/dropout.hpp"
#include "estimator/pytorch/kernel_scratch.hpp"

namespace stowage {

namespace {

constexpr StorageClass activation = StorageClass::activation;
constexpr StorageClass gradient_class = StorageClass::activation_gradient;

TensorView like(OperatorLowering& lowering, std::string_view name, const TensorView& view,
                DataType type, StorageClass storage_class) {
  TensorView result = lowering.new_tensor(name, view.shape, type, storage_class);
  result.strides = dense_strides(view.shape, view.strides);
  return result;
}

TensorView cast_to(OperatorLowering& lowering, const TensorView& view, DataType type,
                   std::string_view name, StorageClass storage_class) {
  if (view.type == type) return view;
  const TensorView result = like(lowering, name, view, type, storage_class);
  lowering.emit(Kernel::cast, name, {view}, {result});
  return result;
}

TensorView times(OperatorLowering& lowering, const TensorView& view, double factor,
                 std::string_view name, StorageClass storage_class) {
  const TensorView result = like(lowering, name, view, view.type, storage_class);
  Attributes attributes;
  attributes.set("factor", factor);
  attributes.set("offset", 0.0);
  lowering.emit(Kernel::scale, name, {view}, {result},
                {.attributes = attributes, .flops = element_count(view.shape)});
  return result;
}

TensorView last_axes_swapped(const TensorView& view) {
  std::vector<std::int64_t> order(view.shape.size());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 2], order[order.size() - 1]);
  return permuted(view, order);
}

/// [batch, heads, rows, columns], of however many axes in front, as the operand of a batched
/// product: a copy where the axes in front do not merge into one.
TensorView heads_merged(OperatorLowering& lowering, const TensorView& view, std::string_view name) {
  const Shape& n = view.shape;
  const std::size_t rank = n.size();
  const Affine matrices = element_count(Shape(n.begin(), n.end() - 2));
  const Shape shape{matrices, n[rank - 2], n[rank - 1]};
  if (auto same = reshaped(view, shape)) return *same;
  return *reshaped(lowering.contiguous(view, name), shape);
}

TensorView heads_repeated(OperatorLowering& lowering, const TensorView& view, std::int64_t groups,
                          std::string_view name) {
  if (groups == 1) return view;
  Shape shape = view.shape;
  shape[1] = shape[1] * Affine(groups);
  const TensorView result = lowering.new_tensor(name, shape, view.type, activation);
  lowering.emit(Kernel::expand, name, {view}, {result});
  return result;
}

/// Zero on and below the diagonal, minus infinity above it.
TensorView causal_mask(OperatorLowering& lowering, const AttentionSizes& s, DataType type) {
  const Shape shape{s.queries, s.keys};
  const TensorView ones = lowering.new_tensor("mask.ones", shape, DataType::boolean, activation);
  lowering.emit(Kernel::fill, "mask.ones", {}, {ones});
  const TensorView lower = lowering.new_tensor("mask.lower", shape, DataType::boolean, activation);
  lowering.emit(Kernel::copy, "mask.lower", {ones}, {lower});
  const TensorView mask = lowering.new_tensor("causal_mask", shape, type, activation);
  lowering.emit(Kernel::cast, "mask", {lower}, {mask});
  return mask;
}

TensorView softmax(OperatorLowering& lowering, const TensorView& scores) {
  const TensorView result =
      lowering.new_tensor("probabilities", scores.shape, scores.type, activation);
  const StorageId masked = lowering
                               .new_tensor("softmax.masked", {safe_softmax_scratch(scores.shape)},
                                           DataType::boolean, StorageClass::workspace)
                               .storage;
  lowering.emit(Kernel::softmax_forward, "softmax", {scores}, {result},
                {.attributes = softmax_attributes(2, false),
                 .temporaries = {masked},
                 .flops = element_count(scores.shape) * Affine(attention_softmax_flops)});
  lowering.save("result", result);
  return result;
}

TensorView dropped(OperatorLowering& lowering, const TensorView& probabilities) {
  const double p = attention_dropout(lowering);
  if (p == 0) return probabilities;
  const Shape& shape = probabilities.shape;
  const TensorView result = lowering.new_tensor("dropped", shape, probabilities.type, activation);
  const TensorView mask =
      lowering.new_tensor("mask", shape, DataType::boolean, StorageClass::saved_auxiliary);
  lowering.emit(Kernel::dropout_forward, "dropout", {probabilities}, {result, mask},
                {.attributes = dropout_attributes(lowering, p), .flops = element_count(shape)});
  lowering.save("mask", mask);
  return result;
}

/// The gradients of a batched product's operands; the node lets go of them when both are made.
std::pair<TensorView, TensorView> product_gradients(OperatorLowering& lowering,
                                                    const TensorView& dy, const TensorView& a,
                                                    const TensorView& b, const std::string& name,
                                                    Affine flops) {
  const TensorView da = lowering.new_tensor("grad_" + name + ".a", a.shape, a.type, gradient_class);
  lowering.emit(Kernel::matmul, "backward." + name + ".a", {dy, b}, {da},
                {.attributes = product_attributes(false, true, 1), .flops = flops});
  const TensorView db = lowering.new_tensor("grad_" + name + ".b", b.shape, b.type, gradient_class);
  lowering.emit(
      Kernel::matmul, "backward." + name + ".b", {a, dy}, {db},
      {.attributes = product_attributes(true, false, 1), .holds = {b.storage}, .flops = flops});
  return {da, db};
}

TensorView summed_groups(OperatorLowering& lowering, const TensorView& gradient,
                         std::int64_t groups, const std::string& name) {
  if (groups == 1) return gradient;
  Shape shape = gradient.shape;
  shape[1] = quotient(shape[1], groups);
  const TensorView sum =
      lowering.new_tensor("grad_" + name + ".sum", shape, gradient.type, gradient_class);
  lowering.emit(Kernel::sum_to_shape, "backward." + name + ".sum", {gradient}, {sum},
                {.flops = element_count(gradient.shape)});
  return sum;
}

}  // namespace

/// Emits the operators in PyTorch's order: the operands in the inner format, query and key scaled,
/// shared heads repeated, the first product, mask, softmax, dropout, the second product, and a
/// conversion back.
void forward_math_attention(OperatorLowering& lowering, const AttentionOperands& operands) {
  const DataType type = operands.query.type;
  const DataType inner = element_size(type) == 2 ? DataType::float32 : type;
  const AttentionSizes s =
      attention_sizes(operands.query.shape, operands.key.shape, operands.value.shape);
  const TensorView q = cast_to(lowering, operands.query, inner, "query.float", activation);
  const TensorView k = cast_to(lowering, operands.key, inner, "key.float", activation);
  const TensorView v = cast_to(lowering, operands.value, inner, "value.float", activation);
  const double root = std::sqrt(attention_scale(lowering, s.features));
  const TensorView query = times(lowering, q, root, "scaled_query", activation);
  std::optional<TensorView> mask = operands.bias;
  if (!mask && lowering.attributes().boolean("causal")) mask = causal_mask(lowering, s, inner);
  const TensorView all_keys = heads_repeated(lowering, k, s.groups, "repeated_key");
  const TensorView all_values = heads_repeated(lowering, v, s.groups, "repeated_value");
  const TensorView key =
      times(lowering, last_axes_swapped(all_keys), root, "scaled_key", activation);
  const TensorView a = heads_merged(lowering, query, "scaled_query.copy");
  const TensorView b = heads_merged(lowering, key, "scaled_key.copy");
  const Affine rows = s.batch * Affine(s.heads);
  const TensorView scores =
      lowering.new_tensor("scores", {rows, s.queries, s.keys}, inner, activation);
  lowering.emit(Kernel::matmul, "scores", {a, b}, {scores},
                {.attributes = product_attributes(false, false, 1),
                 .holds = {key.storage},
                 .flops = attention_product_flops(s, s.features)});
  lowering.save("scores.a", a);
  lowering.save("scores.b", b);
  if (mask) {
    lowering.emit(Kernel::accumulate, "mask.add", {scores, *mask}, {scores},
                  {.flops = element_count(scores.shape)});
  }
  const TensorView weights = dropped(lowering, softmax(lowering, scores));
  const TensorView values = heads_merged(lowering, all_values, "value.copy");
  // The composite's variables live until it returns.
  std::vector<StorageId> variables = operands.held;
  variables.insert(variables.end(),
                   {operands.query.storage, operands.key.storage, operands.value.storage, q.storage,
                    k.storage, v.storage, query.storage, all_keys.storage, all_values.storage});
  if (mask) variables.push_back(mask->storage);
  const bool converts = inner != type;
  const TensorView out =
      converts
          ? lowering.new_tensor("output.float", lowering.output_type().shape, inner, activation)
          : lowering.new_output();
  lowering.emit(Kernel::matmul, "forward", {weights, values}, {out},
                {.attributes = product_attributes(false, false, 1),
                 .holds = variables,
                 .flops = attention_product_flops(s, s.value_features)});
  lowering.save("output.a", weights);
  lowering.save("output.b", values);
  if (!converts) return;
  const TensorView result = lowering.new_output();
  lowering.emit(Kernel::cast, "forward.cast", {out}, {result});
  // The function returns the weights as well.
  const TensorView returned = lowering.new_tensor("weights.cast", weights.shape, type, activation);
  variables.insert(variables.end(), {out.storage, result.storage});
  lowering.emit(Kernel::cast, "weights.cast", {weights}, {returned}, {.holds = variables});
}

/// The reverse of the forward rule: gradients of the second product, of dropout, of softmax, of the
/// mask, of the first product, then of the scaling, the repeated heads and the conversions.
AttentionOperands backward_math_attention(OperatorLowering& lowering) {
  lowering.hold_by_hand();
  const TensorView a = lowering.saved("scores.a"), b = lowering.saved("scores.b");
  const TensorView weights = lowering.saved("output.a"), values = lowering.saved("output.b");
  const DataType inner = weights.type;
  const Shape& q = lowering.input(0).shape;
  const AttentionSizes s = attention_sizes(q, lowering.input(1).shape, lowering.input(2).shape);
  const double root = std::sqrt(attention_scale(lowering, s.features));
  const DataType type = lowering.output_type().type;

  const TensorView dy = heads_merged(
      lowering, cast_to(lowering, lowering.output_gradient(), inner, "grad.float", gradient_class),
      "grad.copy");
  auto [d_weights, d_values] = product_gradients(lowering, dy, weights, values, "output",
                                                 attention_product_flops(s, s.value_features));
  if (lowering.has_saved("mask")) {
    const TensorView undropped =
        lowering.new_tensor("grad_probabilities", d_weights.shape, inner, gradient_class);
    lowering.emit(
        Kernel::dropout_backward, "backward.dropout", {d_weights, lowering.saved("mask")},
        {undropped},
        {.attributes = dropout_attributes(lowering, lowering.attributes().real("dropout")),
         .flops = element_count(d_weights.shape)});
    d_weights = undropped;
  }
  const TensorView d_scores =
      lowering.new_tensor("grad_scores", d_weights.shape, inner, gradient_class);
  lowering.emit(Kernel::softmax_backward, "backward.softmax", {lowering.saved("result"), d_weights},
                {d_scores},
                {.attributes = softmax_attributes(2, false),
                 .temporaries = {new_softmax_product(lowering, lowering.saved("result"))},
                 .flops = element_count(d_scores.shape) * Affine(attention_softmax_flops)});
  AttentionOperands result;
  if (lowering.input_count() > 3 && lowering.input_needs_gradient(3)) {
    const Shape& shape = lowering.input(3).shape;
    result.bias = d_scores;
    if (shape != attention_score_shape(q, lowering.input(1).shape)) {
      result.bias = lowering.new_tensor("grad_bias", shape, inner, gradient_class);
      lowering.emit(Kernel::sum_to_shape, "backward.bias", {d_scores}, {*result.bias},
                    {.flops = element_count(d_scores.shape)});
    } else {
      result.bias->shape = shape;
      result.bias->strides = contiguous_strides(shape);
    }
    // The engine converts it to the mask's format after the sum.
    result.bias = cast_to(lowering, *result.bias, type, "grad_bias.cast", gradient_class);
  }
  const auto [d_query, d_key] =
      product_gradients(lowering, d_scores, a, b, "scores", attention_product_flops(s, s.features));
  const auto unmerged = [&](const TensorView& view) {
    Shape shape(q.begin(), q.end() - 2);
    shape.insert(shape.end(), view.shape.begin() + 1, view.shape.end());
    return contiguous_view(view.storage, std::move(shape), view.type);
  };
  const TensorView key =
      last_axes_swapped(times(lowering, unmerged(d_key), root, "grad_scaled_key", gradient_class));
  const TensorView value = unmerged(d_values);
  const std::int64_t groups =
      lowering.attributes().text("grouped") == "native" ? s.groups : std::int64_t{1};
  const TensorView value_sum = summed_groups(lowering, value, groups, "value");
  const TensorView key_sum = summed_groups(lowering, key, groups, "key");
  const TensorView query =
      times(lowering, unmerged(d_query), root, "grad_scaled_query", gradient_class);
  result.value = cast_to(lowering, value_sum, type, "grad_value", gradient_class);
  result.key = cast_to(lowering, key_sum, type, "grad_key", gradient_class);
  result.query = cast_to(lowering, query, type, "grad_query", gradient_class);
  return result;
}

}  // namespace stowage
