// softmax, and scaled_dot_product_attention over [batch, heads, length, features].
// PyTorch runs fp32 attention with its memory-efficient kernel on CUDA: it saves q, k, v, the
// output and a float32 log-sum-exp padded to 32 rows (kAlignLSE). Our executor runs two matrix
// products around a (masked) softmax and keeps the probabilities.
#include <fmt/format.h>

#include <cmath>

#include "estimator/catalogue/dropout.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

constexpr std::int64_t softmax_flops = 5;  // an element
constexpr std::int64_t logsumexp_alignment = 32;

tl::expected<Inference, InferenceError> infer_softmax(const Attributes& attributes,
                                                      std::span<const TensorType> inputs) {
  const TensorType& x = inputs[0];
  if (auto error = want_floating(x)) return tl::unexpected(*error);
  if (!resolve_axis(attributes.integer("axis"), x.shape.size())) {
    return refuse(fmt::format("axis {} is outside its input's shape {}", attributes.integer("axis"),
                              to_string(x.shape)),
                  "axis", 0);
  }
  Inference result;
  result.outputs = {x};
  result.flops = element_count(x.shape) * Affine(softmax_flops);
  return result;
}

Attributes softmax_attributes(std::size_t axis, bool causal) {
  Attributes attributes;
  attributes.set("axis", static_cast<std::int64_t>(axis));
  attributes.set("causal", causal);
  return attributes;
}

Attributes own_softmax_attributes(const OperatorLowering& lowering) {
  return softmax_attributes(
      *resolve_axis(lowering.attributes().integer("axis"), lowering.output_type().shape.size()),
      false);
}

// Under autocast CUDA's kernel reads float16 and writes float32; any other format is converted
// first (ATen/native/SoftMax.cpp).
TensorView softmax_input(OperatorLowering& lowering) {
  const TensorView x = lowering.contiguous(lowering.input(), "input.contiguous");
  if (x.type == DataType::float16) return x;
  return lowering.cast(x, lowering.output_type().type, "input.cast");
}

void forward_softmax(OperatorLowering& lowering) {
  const TensorView x = softmax_input(lowering);
  const TensorView y = lowering.new_output();
  lowering.emit(Kernel::softmax_forward, "forward", {x}, {y},
                {.attributes = own_softmax_attributes(lowering),
                 .flops = element_count(x.shape) * Affine(softmax_flops)});
  lowering.save("result", y);
}

void backward_softmax(OperatorLowering& lowering) {
  const TensorView y = lowering.saved("result");
  const TensorView dy = lowering.contiguous(lowering.output_gradient(), "grad.contiguous");
  const DataType input = lowering.input().type;
  const TensorView dx =
      lowering.new_tensor("grad_input", y.shape, input == DataType::float16 ? input : y.type,
                          StorageClass::activation_gradient);
  lowering.emit(Kernel::softmax_backward, "backward", {y, dy}, {dx},
                {.attributes = own_softmax_attributes(lowering),
                 .flops = element_count(dx.shape) * Affine(softmax_flops)});
  lowering.give_input_gradient(0, dx);
}

tl::expected<Inference, InferenceError> infer_attention(const Attributes&,
                                                        std::span<const TensorType> inputs) {
  for (int i = 0; i < 3; ++i) {
    const TensorType& input = inputs[static_cast<std::size_t>(i)];
    if (auto error = want_rank(input, 4, "[batch, heads, length, features]", i)) {
      return tl::unexpected(*error);
    }
    if (auto error = want_floating(input, i)) return tl::unexpected(*error);
    for (std::size_t axis = 1; axis < 4; ++axis) {
      if (auto error = want_constant(input.shape[axis], "heads, length and features", i)) {
        return tl::unexpected(*error);
      }
    }
  }
  const Shape& q = inputs[0].shape;
  const Shape& k = inputs[1].shape;
  const Shape& v = inputs[2].shape;
  if (k[0] != q[0] || k[1] != q[1] || k[3] != q[3]) {
    return refuse(fmt::format("the query {} and the key {} differ in batch, heads or features",
                              to_string(q), to_string(k)),
                  {}, 1);
  }
  if (v[0] != k[0] || v[1] != k[1] || v[2] != k[2]) {
    return refuse(fmt::format("the key {} and the value {} differ in batch, heads or length",
                              to_string(k), to_string(v)),
                  {}, 2);
  }
  Inference result;
  result.outputs = {{{q[0], q[1], q[2], v[3]}, inputs[0].type}};
  result.flops = element_count(q) * k[2] * Affine(4);
  return result;
}

// PyTorch: one kernel. Its output lies in memory as [batch, length, heads, features].
void forward_efficient(OperatorLowering& lowering) {
  const TensorView q = lowering.input(0);
  const TensorView k = lowering.input(1);
  const TensorView v = lowering.input(2);
  const Shape& shape = lowering.output_type().shape;
  const TensorView out = lowering.new_output();
  const std::vector<std::int64_t> swap{0, 2, 1, 3};
  TensorView stored =
      contiguous_view(out.storage, {shape[0], shape[2], shape[1], shape[3]}, out.type);
  lowering.set_output(0, permuted(stored, swap));
  std::vector<TensorView> writes{stored};
  if (lowering.needs_gradient()) {
    const std::int64_t rows =
        (shape[2].constant + logsumexp_alignment - 1) / logsumexp_alignment * logsumexp_alignment;
    writes.push_back(lowering.new_tensor("logsumexp", {shape[0], shape[1], rows}, DataType::float32,
                                         StorageClass::saved_auxiliary));
    for (const std::string_view name : {"philox_seed", "philox_offset"}) {
      writes.push_back(
          lowering.new_tensor(name, {}, DataType::int64, StorageClass::saved_auxiliary));
    }
  }
  lowering.emit(Kernel::attention_forward, "forward", {q, k, v}, writes,
                {.flops = element_count(q.shape) * k.shape[2] * Affine(4)});
  lowering.save("query", q);
  lowering.save("key", k);
  lowering.save("value", v);
  lowering.save("output", lowering.output());
  for (std::size_t i = 1; i < writes.size(); ++i) {
    lowering.save(i == 1 ? "logsumexp" : i == 2 ? "philox_seed" : "philox_offset", writes[i]);
  }
}

void backward_efficient(OperatorLowering& lowering) {
  const TensorView q = lowering.saved("query");
  const TensorView k = lowering.saved("key");
  const TensorView v = lowering.saved("value");
  std::vector<TensorView> gradients;
  const std::vector<std::int64_t> swap{0, 2, 1, 3};
  for (int i = 0; i < 3; ++i) {
    // Laid out as [batch, length, heads, features], like the forward's output.
    const TensorView dx = lowering.new_input_gradient(i);
    const Shape& shape = dx.shape;
    gradients.push_back(permuted(
        contiguous_view(dx.storage, {shape[0], shape[2], shape[1], shape[3]}, dx.type), swap));
  }
  const Affine delta = q.shape[0] * q.shape[1] * q.shape[2] * Affine(4);
  lowering.emit(
      Kernel::attention_backward, "backward",
      {lowering.output_gradient(), q, k, v, lowering.saved("output"), lowering.saved("logsumexp")},
      gradients,
      {.temporaries = {lowering.new_temporary("delta", delta)},
       .flops = element_count(q.shape) * k.shape[2] * Affine(10)});
  for (int i = 0; i < 3; ++i) {
    if (lowering.input_needs_gradient(i)) {
      lowering.give_input_gradient(i, gradients[static_cast<std::size_t>(i)]);
    }
  }
}

Attributes product(bool transpose_a, bool transpose_b, double alpha) {
  Attributes attributes;
  attributes.set("transpose_a", transpose_a);
  attributes.set("transpose_b", transpose_b);
  attributes.set("alpha", alpha);
  return attributes;
}

double scale(const TensorView& q) {
  return 1.0 / std::sqrt(static_cast<double>(q.shape[3].constant));
}

// Our executor: scores, softmax, dropout, product; the probabilities stay for backward.
void forward_products(OperatorLowering& lowering) {
  const TensorView q = lowering.input(0);
  const TensorView k = lowering.input(1);
  const TensorView v = lowering.input(2);
  const Shape square{q.shape[0], q.shape[1], q.shape[2], k.shape[2]};
  const Affine flops = element_count(square) * q.shape[3] * Affine(2);
  const TensorView scores = lowering.new_tensor("scores", square, q.type, StorageClass::activation);
  lowering.emit(Kernel::matmul, "scores", {q, k}, {scores},
                {.attributes = product(false, true, scale(q)), .flops = flops});
  const TensorView probabilities =
      lowering.new_tensor("probabilities", square, q.type, StorageClass::activation);
  lowering.emit(Kernel::softmax_forward, "softmax", {scores}, {probabilities},
                {.attributes = softmax_attributes(3, lowering.attributes().boolean("causal")),
                 .flops = element_count(square) * Affine(softmax_flops)});
  TensorView weights = probabilities;
  const double p = lowering.training() ? lowering.attributes().real("dropout") : 0;
  if (p > 0) {
    weights = lowering.new_tensor("dropped", square, q.type, StorageClass::activation);
    const TensorView mask =
        lowering.new_tensor("mask", square, DataType::boolean, StorageClass::saved_auxiliary);
    lowering.emit(Kernel::dropout_forward, "dropout", {probabilities}, {weights, mask},
                  {.attributes = dropout_attributes(lowering, p), .flops = element_count(square)});
    lowering.save("mask", mask);
  }
  lowering.emit(Kernel::matmul, "forward", {weights, v}, {lowering.new_output()},
                {.attributes = product(false, false, 1), .flops = flops});
  lowering.save("query", q);
  lowering.save("key", k);
  lowering.save("value", v);
  lowering.save("probabilities", probabilities);
  lowering.save("weights", weights);
}

void backward_products(OperatorLowering& lowering) {
  const TensorView q = lowering.saved("query");
  const TensorView k = lowering.saved("key");
  const TensorView v = lowering.saved("value");
  const TensorView probabilities = lowering.saved("probabilities");
  const TensorView dy = lowering.output_gradient();
  const Shape& square = probabilities.shape;
  const Affine flops = element_count(square) * q.shape[3] * Affine(2);
  const TensorView dv = lowering.new_input_gradient(2);
  lowering.emit(Kernel::matmul, "backward.value", {lowering.saved("weights"), dy}, {dv},
                {.attributes = product(true, false, 1), .flops = flops});
  TensorView d_weights =
      lowering.new_tensor("grad_weights", square, q.type, StorageClass::activation_gradient);
  lowering.emit(Kernel::matmul, "backward.weights", {dy, v}, {d_weights},
                {.attributes = product(false, true, 1), .flops = flops});
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
                {.attributes = softmax_attributes(3, lowering.attributes().boolean("causal")),
                 .flops = element_count(square) * Affine(softmax_flops)});
  const TensorView dq = lowering.new_input_gradient(0);
  lowering.emit(Kernel::matmul, "backward.query", {d_scores, k}, {dq},
                {.attributes = product(false, false, scale(q)), .flops = flops});
  const TensorView dk = lowering.new_input_gradient(1);
  lowering.emit(Kernel::matmul, "backward.key", {d_scores, q}, {dk},
                {.attributes = product(true, false, scale(q)), .flops = flops});
  lowering.give_input_gradient(0, dq);
  lowering.give_input_gradient(1, dk);
  lowering.give_input_gradient(2, dv);
}

}  // namespace

OperatorRow rows::softmax() {
  return {.name = "softmax",
          .doc = "normalized exponentials along an axis",
          .attributes = {{.name = "axis",
                          .type = AttributeType::integer,
                          .doc = "which axis; negative counts from the last",
                          .default_value = std::int64_t{-1}}},
          .infer = infer_softmax,
          .lowering = {LoweringRules{forward_softmax, backward_softmax, true},
                       LoweringRules{forward_softmax, backward_softmax}},
          .autocast = AutocastClass::float32};
}

OperatorRow rows::scaled_dot_product_attention() {
  return {.name = "scaled_dot_product_attention",
          .doc = "softmax(q k^T / sqrt(features)) v of inputs q, k, v",
          .attributes = {{.name = "causal",
                          .type = AttributeType::boolean,
                          .doc = "each position sees itself and earlier ones",
                          .default_value = false},
                         {.name = "dropout",
                          .type = AttributeType::real,
                          .doc = "probability of dropping a weight in training",
                          .default_value = 0.0,
                          .minimum = 0,
                          .maximum = 0.999999}},
          .min_inputs = 3,
          .max_inputs = 3,
          .infer = infer_attention,
          .lowering = {LoweringRules{forward_efficient, backward_efficient},
                       LoweringRules{forward_products, backward_products}},
          .autocast = AutocastClass::lower};
}

}  // namespace stowage
