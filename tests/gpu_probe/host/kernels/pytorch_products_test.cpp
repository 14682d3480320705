// Compares convolutions, products, embeddings and attention with PyTorch's values. The kernels are
// combined as the `stowage` lowering does it.
#include <cmath>

#include "tests/gpu_probe/host/kernels/checked_case.hpp"

namespace stowage::test {
namespace {

const Attributes of_no_product;

std::vector<Tensor*> with_bias(Case& c) {
  std::vector<Tensor*> reads{&c.inputs[0], c.parameter("weight")};
  if (c.parameter("bias") != nullptr) reads.push_back(c.parameter("bias"));
  return reads;
}

void check_weighted(Case& c, Kernel forward, Kernel data, Kernel filter, std::int64_t bias_axis) {
  Checked checked(c);
  Tensor &x = c.inputs[0], &w = *c.parameter("weight"), &dy = c.output_gradient;
  checked.output(result(forward, c.attributes, with_bias(c), c.output.shape));
  checked.input(0, result(data, c.attributes, {&dy, &w}, x.shape));
  checked.parameter("weight", result(filter, c.attributes, {&x, &dy}, w.shape));
  if (Tensor* bias = c.parameter("bias")) {
    const Attributes axis = attributes_of({{"axis", bias_axis}});
    checked.parameter("bias", result(Kernel::channel_sum, axis, {&dy}, bias->shape));
  }
}

}  // namespace

TEST_CASE("convolutions agree with PyTorch") {
  for (Case& c : cases_of("conv2d")) {
    check_weighted(c, Kernel::convolution_forward, Kernel::convolution_backward_data,
                   Kernel::convolution_backward_filter, 1);
  }
}

TEST_CASE("transposed convolutions agree with PyTorch") {
  for (Case& c : cases_of("conv_transpose2d")) {
    check_weighted(c, Kernel::transposed_convolution_forward,
                   Kernel::transposed_convolution_backward_data,
                   Kernel::transposed_convolution_backward_filter, 1);
  }
}

TEST_CASE("linear layers agree with PyTorch") {
  for (Case& c : cases_of("linear")) {
    check_weighted(c, Kernel::linear_forward, Kernel::linear_backward_data,
                   Kernel::linear_backward_filter, -1);
  }
}

TEST_CASE("matrix products agree with PyTorch, broadcast ones included") {
  const Attributes left = attributes_of({{"transpose_a", true}});
  const Attributes right = attributes_of({{"transpose_b", true}});
  for (Case& c : cases_of("matmul")) {
    Checked checked(c);
    Tensor &a = c.inputs[0], &b = c.inputs[1], &dy = c.output_gradient;
    checked.output(result(Kernel::matmul, of_no_product, {&a, &b}, c.output.shape));
    checked.input(0, result(Kernel::matmul, right, {&dy, &b}, a.shape));
    checked.input(1, result(Kernel::matmul, left, {&a, &dy}, b.shape));
  }
}

TEST_CASE("embeddings agree with PyTorch") {
  for (Case& c : cases_of("embedding")) {
    Checked checked(c);
    Tensor& w = *c.parameter("weight");
    checked.output(
        result(Kernel::embedding_forward, c.attributes, {&c.inputs[0], &w}, c.output.shape));
    checked.parameter("weight", result(Kernel::embedding_backward, c.attributes,
                                       {&c.inputs[0], &c.output_gradient}, w.shape));
  }
}

TEST_CASE("fused attention agrees with PyTorch") {
  for (Case& c : cases_of("scaled_dot_product_attention")) {
    Checked checked(c);
    Tensor &q = c.inputs[0], &k = c.inputs[1], &v = c.inputs[2], &dy = c.output_gradient;
    Tensor y = unwritten(c.output.shape), dq = unwritten(q.shape), dk = unwritten(k.shape),
           dv = unwritten(v.shape), logsumexp = unwritten({q.shape[0], q.shape[1], q.shape[2]});
    run(Kernel::attention_forward, c.attributes, {&q, &k, &v}, {&y, &logsumexp});
    checked.output(y);
    run(Kernel::attention_backward, c.attributes, {&dy, &q, &k, &v, &y, &logsumexp},
        {&dq, &dk, &dv});
    checked.input(0, dq);
    checked.input(1, dk);
    checked.input(2, dv);
  }
}

TEST_CASE("attention put together from products and softmax agrees with PyTorch") {
  for (Case& c : cases_of("scaled_dot_product_attention")) {
    Checked checked(c);
    Tensor &q = c.inputs[0], &k = c.inputs[1], &v = c.inputs[2], &dy = c.output_gradient;
    const double scale = c.attributes.has("scale")
                             ? c.attributes.real("scale")
                             : 1 / std::sqrt(static_cast<double>(q.shape.back()));
    const Attributes scaled = attributes_of({{"alpha", scale}});
    const Attributes scores_of = attributes_of({{"alpha", scale}, {"transpose_b", true}});
    const Attributes causal =
        attributes_of({{"axis", std::int64_t{-1}}, {"causal", c.attributes.boolean("causal")}});
    const Attributes transpose_a = attributes_of({{"transpose_a", true}});
    const Attributes transpose_b = attributes_of({{"transpose_b", true}});
    Sizes shape = q.shape;
    shape.back() = k.shape[k.shape.size() - 2];
    Tensor scores = result(Kernel::matmul, scores_of, {&q, &k}, shape);
    Tensor p = result(Kernel::softmax_forward, causal, {&scores}, shape);
    checked.output(result(Kernel::matmul, of_no_product, {&p, &v}, c.output.shape));
    Tensor dp = result(Kernel::matmul, transpose_b, {&dy, &v}, shape);
    Tensor ds = result(Kernel::softmax_backward, causal, {&p, &dp}, shape);
    checked.input(0, result(Kernel::matmul, scaled, {&ds, &k}, q.shape));
    checked.input(1,
                  result(Kernel::matmul, attributes_of({{"alpha", scale}, {"transpose_a", true}}),
                         {&ds, &q}, k.shape));
    checked.input(2, result(Kernel::matmul, transpose_a, {&p, &dy}, v.shape));
  }
}

}  // namespace stowage::test
