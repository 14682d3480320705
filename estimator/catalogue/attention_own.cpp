// scaled_dot_product_attention by our executor's fused kernels: they keep q, k, v, the output and a
// logsumexp for each row of scores. Key heads that several query heads share are not repeated, and
// the gradient of a bias has the bias's own shape.
#include "estimator/catalogue/attention.hpp"
#include "estimator/catalogue/dropout.hpp"

namespace stowage {

namespace {

AttentionSizes own_sizes(const OperatorLowering& lowering) {
  return attention_sizes(lowering.input(0).shape, lowering.input(1).shape, lowering.input(2).shape);
}

/// Whether cuDNN may run the call, forward and backward: it makes no gradient of a bias, and its
/// dropout draws other masks than ours.
bool suits_cudnn(const OperatorLowering& lowering) {
  const AttentionSizes s = own_sizes(lowering);
  if (element_size(lowering.output_type().type) != 2 || attention_dropout(lowering) > 0) {
    return false;
  }
  if (s.features % 8 != 0 || s.value_features % 8 != 0 || s.keys == 1) return false;
  if (lowering.input_count() < 4) return true;
  // AttentionQuery takes a bias for one that holds the causal mask already.
  return !lowering.input_needs_gradient(3) && !lowering.attributes().boolean("causal");
}

Attributes fused_attributes(const OperatorLowering& lowering) {
  const double p = attention_dropout(lowering);
  Attributes attributes;
  if (p > 0) attributes = dropout_attributes(lowering, p);
  attributes.set("dropout", p);
  attributes.set("scale", attention_scale(lowering, own_sizes(lowering).features));
  attributes.set("implementation", std::string(suits_cudnn(lowering) ? "cudnn" : "own"));
  return attributes;
}

Affine score_flops(const OperatorLowering& lowering, std::int64_t features) {
  return attention_product_flops(own_sizes(lowering), features);
}

}  // namespace

void forward_attention_own(OperatorLowering& lowering) {
  const AttentionSizes s = own_sizes(lowering);
  const TensorView &q = lowering.input(0), &k = lowering.input(1), &v = lowering.input(2);
  std::vector<TensorView> reads{q, k, v};
  if (lowering.input_count() > 3) reads.push_back(additive_mask(lowering, q.type));
  const TensorView y = lowering.new_output();
  std::vector<TensorView> writes{y};
  if (lowering.needs_gradient()) {
    const DataType statistic = q.type == DataType::float64 ? DataType::float64 : DataType::float32;
    writes.push_back(lowering.new_tensor("logsumexp", {s.batch, s.heads, s.queries}, statistic,
                                         StorageClass::saved_auxiliary));
    lowering.save("logsumexp", writes[1]);
  }
  lowering.emit(Kernel::attention_forward, "forward", reads, writes,
                {.attributes = fused_attributes(lowering),
                 .flops = score_flops(lowering, s.features + s.value_features)});
  lowering.save("query", q);
  lowering.save("key", k);
  lowering.save("value", v);
  lowering.save("output", y);
  if (reads.size() > 3) lowering.save("bias", reads[3]);
}

void backward_attention_own(OperatorLowering& lowering) {
  const AttentionSizes s = own_sizes(lowering);
  std::vector<TensorView> reads{lowering.output_gradient(), lowering.saved("query"),
                                lowering.saved("key"),      lowering.saved("value"),
                                lowering.saved("output"),   lowering.saved("logsumexp")};
  if (lowering.has_saved("bias")) reads.push_back(lowering.saved("bias"));
  std::vector<TensorView> writes{lowering.new_input_gradient(0), lowering.new_input_gradient(1),
                                 lowering.new_input_gradient(2)};
  const bool wants_bias = reads.size() > 6 && lowering.input_needs_gradient(3);
  if (wants_bias) writes.push_back(lowering.new_input_gradient(3));
  // The scores again, and a product each for what they and the three operands get.
  lowering.emit(Kernel::attention_backward, "backward", reads, writes,
                {.attributes = fused_attributes(lowering),
                 .flops = score_flops(lowering, 3 * s.features + 2 * s.value_features)});
  for (std::size_t i = 0; i < writes.size(); ++i) {
    lowering.give_input_gradient(static_cast<int>(i), writes[i]);
  }
}

}  // namespace stowage
