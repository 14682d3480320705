// scaled_dot_product_attention as our executor runs it for `implementation: math`: scores, softmax,
// dropout, product; the probabilities stay for the backward pass. Query heads that share a key head
// are an axis of their own, along which the products broadcast and the gradients of key and value
// are summed. Operands of three or five axes have one key head for each query head.
#include "estimator/catalogue/attention.hpp"
#include "estimator/catalogue/dropout.hpp"

namespace stowage {

namespace {

/// [batch, heads, length, features] as [batch, key heads, group, length, features].
TensorView grouped(const TensorView& view, std::int64_t key_heads, std::int64_t groups) {
  if (groups == 1) return view;
  const Shape& n = view.shape;
  const std::int64_t group = n[1].constant / key_heads;
  return contiguous_view(view.storage, {n[0], key_heads, group, n[2], n[3]}, view.type);
}

AttentionSizes sizes_of(const OperatorLowering& lowering) {
  return attention_sizes(lowering.input(0).shape, lowering.input(1).shape, lowering.input(2).shape);
}

}  // namespace

TensorView additive_mask(OperatorLowering& lowering, DataType type) {
  const TensorView& mask = lowering.input(3);
  if (mask.type == type) return mask;
  constexpr double lowest = -30'000;
  const TensorView numbers =
      lowering.new_tensor("mask.numbers", mask.shape, type, StorageClass::activation);
  lowering.emit(Kernel::cast, "mask.cast", {mask}, {numbers});
  TensorView bias = lowering.new_tensor("mask.scores", mask.shape, type, StorageClass::activation);
  Attributes attributes;
  attributes.set("factor", -lowest);
  attributes.set("offset", lowest);
  lowering.emit(Kernel::scale, "mask.scale", {numbers}, {bias},
                {.attributes = attributes, .flops = element_count(mask.shape)});
  return bias;
}

/// Emits scores, bias, softmax, dropout and the product with the values, over views with an axis of
/// their own for the query heads that share a key head.
void forward_attention_products(OperatorLowering& lowering) {
  const AttentionSizes s = sizes_of(lowering);
  const std::int64_t key_heads = s.heads / s.groups;
  const TensorView q = grouped(lowering.input(0), key_heads, s.groups);
  const TensorView k = grouped(lowering.input(1), key_heads, s.groups);
  const TensorView v = grouped(lowering.input(2), key_heads, s.groups);
  const Shape square = attention_score_shape(lowering.input(0).shape, lowering.input(1).shape);
  const auto last = static_cast<std::int64_t>(square.size()) - 1;
  const double factor = attention_scale(lowering, s.features);
  const TensorView scores = lowering.new_tensor("scores", square, q.type, StorageClass::activation);
  lowering.emit(Kernel::matmul, "scores", {q, k}, {grouped(scores, key_heads, s.groups)},
                {.attributes = product_attributes(false, true, factor),
                 .flops = attention_product_flops(s, s.features)});
  TensorView biased = scores;
  if (lowering.input_count() > 3) {
    biased = lowering.new_tensor("biased_scores", square, q.type, StorageClass::activation);
    lowering.emit(Kernel::add, "bias", {scores, additive_mask(lowering, q.type)}, {biased},
                  {.flops = element_count(square)});
  }
  const TensorView probabilities =
      lowering.new_tensor("probabilities", square, q.type, StorageClass::activation);
  lowering.emit(Kernel::softmax_forward, "softmax", {biased}, {probabilities},
                {.attributes = softmax_attributes(last, lowering.attributes().boolean("causal")),
                 .flops = element_count(square) * Affine(attention_softmax_flops)});
  TensorView weights = probabilities;
  const double p = attention_dropout(lowering);
  if (p > 0) {
    weights = lowering.new_tensor("dropped", square, q.type, StorageClass::activation);
    const TensorView mask =
        lowering.new_tensor("mask", square, DataType::boolean, StorageClass::saved_auxiliary);
    lowering.emit(Kernel::dropout_forward, "dropout", {probabilities}, {weights, mask},
                  {.attributes = dropout_attributes(lowering, p), .flops = element_count(square)});
    lowering.save("mask", mask);
  }
  lowering.emit(Kernel::matmul, "forward", {grouped(weights, key_heads, s.groups), v},
                {grouped(lowering.new_output(), key_heads, s.groups)},
                {.attributes = product_attributes(false, false, 1),
                 .flops = attention_product_flops(s, s.value_features)});
  lowering.save("query", q);
  lowering.save("key", k);
  lowering.save("value", v);
  lowering.save("probabilities", probabilities);
  lowering.save("weights", weights);
}

/// Emits the gradients in the order value, weights, dropout, softmax, query, key, and sums the
/// scores' gradient for the bias.
void backward_attention_products(OperatorLowering& lowering) {
  const AttentionSizes s = sizes_of(lowering);
  const std::int64_t key_heads = s.heads / s.groups;
  const auto in_groups = [&](const TensorView& view) { return grouped(view, key_heads, s.groups); };
  const TensorView q = lowering.saved("query");
  const TensorView k = lowering.saved("key");
  const TensorView v = lowering.saved("value");
  const TensorView probabilities = lowering.saved("probabilities");
  const TensorView dy = in_groups(lowering.output_gradient());
  const Shape& square = probabilities.shape;
  const auto last = static_cast<std::int64_t>(square.size()) - 1;
  const Affine flops = attention_product_flops(s, s.features);
  const Affine value_flops = attention_product_flops(s, s.value_features);
  const TensorView dv = lowering.new_input_gradient(2);
  lowering.emit(Kernel::matmul, "backward.value", {in_groups(lowering.saved("weights")), dy},
                {in_groups(dv)},
                {.attributes = product_attributes(true, false, 1), .flops = value_flops});
  TensorView d_weights =
      lowering.new_tensor("grad_weights", square, q.type, StorageClass::activation_gradient);
  lowering.emit(Kernel::matmul, "backward.weights", {dy, v}, {in_groups(d_weights)},
                {.attributes = product_attributes(false, true, 1), .flops = value_flops});
  if (lowering.has_saved("mask")) {
    const TensorView undropped = lowering.new_tensor("grad_probabilities", square, q.type,
                                                     StorageClass::activation_gradient);
    lowering.emit(
        Kernel::dropout_backward, "backward.dropout", {d_weights, lowering.saved("mask")},
        {undropped},
        {.attributes = dropout_attributes(lowering, lowering.attributes().real("dropout")),
         .flops = element_count(square)});
    d_weights = undropped;
  }
  const TensorView d_scores =
      lowering.new_tensor("grad_scores", square, q.type, StorageClass::activation_gradient);
  lowering.emit(Kernel::softmax_backward, "backward.softmax", {probabilities, d_weights},
                {d_scores},
                {.attributes = softmax_attributes(last, lowering.attributes().boolean("causal")),
                 .flops = element_count(square) * Affine(attention_softmax_flops)});
  const double factor = attention_scale(lowering, s.features);
  const TensorView dq = lowering.new_input_gradient(0);
  lowering.emit(Kernel::matmul, "backward.query", {in_groups(d_scores), k}, {in_groups(dq)},
                {.attributes = product_attributes(false, false, factor), .flops = flops});
  const TensorView dk = lowering.new_input_gradient(1);
  lowering.emit(Kernel::matmul, "backward.key", {in_groups(d_scores), q}, {in_groups(dk)},
                {.attributes = product_attributes(true, false, factor), .flops = flops});
  lowering.give_input_gradient(0, dq);
  lowering.give_input_gradient(1, dk);
  lowering.give_input_gradient(2, dv);
  if (lowering.input_count() < 4 || !lowering.input_needs_gradient(3)) return;
  if (lowering.input(3).shape == square) return lowering.give_input_gradient(3, d_scores);
  const TensorView d_bias = lowering.new_input_gradient(3);
  lowering.emit(Kernel::sum_to_shape, "backward.bias", {d_scores}, {d_bias},
                {.flops = element_count(square)});
  lowering.give_input_gradient(3, d_bias);
}

}  // namespace stowage
