// The host kernels against PyTorch's values: every operator's result and all its gradients, the
// kernels being put together as the `stowage` lowering does.
//
// The reference is computed in float64 and rounded to float32, so what remains is our own rounding:
// the tolerance is relative to the largest value of each tensor.
#include <cmath>
#include <set>

#include "tests/gpu_probe/host/pytorch_case.hpp"

namespace stowage::test {
namespace {

constexpr double tolerance = 1e-6;

const Attributes none;

/// Every gradient of the case that a test must look at, ticked off as it does.
class Checked {
 public:
  explicit Checked(const Case& c) : case_(c) {}

  void output(const Tensor& actual) { CHECK_MESSAGE(near(actual, case_.output), case_.name); }
  void input(std::size_t i, const Tensor& actual) {
    CHECK_MESSAGE(near(actual, case_.input_gradients.at(i)), case_.name, ", input ", i);
    inputs_.insert(i);
  }
  void parameter(const std::string& name, const Tensor& actual) {
    for (const auto& [existing, expected] : case_.parameter_gradients) {
      if (existing != name) continue;
      CHECK_MESSAGE(near(actual, expected), case_.name, ", ", name);
      parameters_.insert(name);
    }
  }
  ~Checked() {
    for (std::size_t i = 0; i < case_.input_gradients.size(); ++i) {
      if (!case_.input_gradients[i].floats.empty()) CHECK(inputs_.count(i) == 1);
    }
    CHECK(parameters_.size() == case_.parameter_gradients.size());
  }

 private:
  static bool near(const Tensor& actual, const Tensor& expected) {
    return distance(actual, expected) <= tolerance;
  }
  const Case& case_;
  std::set<std::size_t> inputs_;
  std::set<std::string> parameters_;
};

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
    checked.output(result(Kernel::matmul, none, {&a, &b}, c.output.shape));
    checked.input(0, result(Kernel::matmul, right, {&dy, &b}, a.shape));
    checked.input(1, result(Kernel::matmul, left, {&a, &dy}, b.shape));
  }
}

TEST_CASE("batch normalisation agrees with PyTorch") {
  for (Case& c : cases_of("batch_norm")) {
    Tensor &x = c.inputs[0], &w = *c.parameter("weight"), &b = *c.parameter("bias");
    Tensor mean = c.buffers_before[0].second, variance = c.buffers_before[1].second;
    CHECK(c.buffers_before[0].first == "running_mean");
    if (c.attributes.text("mode") == "eval") {
      // The stowage set has no backward of it: statistics are fixed in inference only.
      const Tensor y = result(Kernel::batch_norm_inference, c.attributes,
                              {&x, &w, &b, &mean, &variance}, c.output.shape);
      CHECK(distance(y, c.output) <= tolerance);
      continue;
    }
    Checked checked(c);
    Tensor y = unwritten(x.shape), save_mean = unwritten(w.shape), save_invstd = unwritten(w.shape);
    run(Kernel::batch_norm_forward, c.attributes, {&x, &w, &b, &mean, &variance},
        {&y, &save_mean, &save_invstd, &mean, &variance});
    checked.output(y);
    CHECK(distance(mean, c.buffers_after[0].second) <= tolerance);
    CHECK(distance(variance, c.buffers_after[1].second) <= tolerance);
    Tensor dx = unwritten(x.shape), dw = unwritten(w.shape), db = unwritten(w.shape);
    run(Kernel::batch_norm_backward, c.attributes,
        {&x, &c.output_gradient, &w, &save_mean, &save_invstd}, {&dx, &dw, &db});
    checked.input(0, dx);
    checked.parameter("weight", dw);
    checked.parameter("bias", db);
  }
}

TEST_CASE("layer normalisation agrees with PyTorch") {
  for (Case& c : cases_of("layer_norm")) {
    Checked checked(c);
    Tensor &x = c.inputs[0], &w = *c.parameter("weight"), &b = *c.parameter("bias");
    c.attributes.set("axes", static_cast<std::int64_t>(w.shape.size()));
    const Sizes rows(x.shape.begin(), x.shape.end() - static_cast<std::ptrdiff_t>(w.shape.size()));
    Tensor y = unwritten(x.shape), mean = unwritten(rows), rstd = unwritten(rows);
    run(Kernel::layer_norm_forward, c.attributes, {&x, &w, &b}, {&y, &mean, &rstd});
    checked.output(y);
    Tensor dx = unwritten(x.shape), dw = unwritten(w.shape), db = unwritten(w.shape);
    run(Kernel::layer_norm_backward, c.attributes, {&x, &c.output_gradient, &w, &mean, &rstd},
        {&dx, &dw, &db});
    checked.input(0, dx);
    checked.parameter("weight", dw);
    checked.parameter("bias", db);
  }
}

TEST_CASE("activations agree with PyTorch") {
  for (Case& c : cases_of("relu")) {
    Checked checked(c);
    Tensor y = result(Kernel::relu_forward, none, {&c.inputs[0]}, c.output.shape);
    checked.output(y);
    checked.input(0, result(Kernel::relu_backward, none, {&y, &c.output_gradient}, y.shape));
  }
  for (Case& c : cases_of("gelu")) {
    Checked checked(c);
    Tensor& x = c.inputs[0];
    checked.output(result(Kernel::gelu_forward, c.attributes, {&x}, x.shape));
    checked.input(0,
                  result(Kernel::gelu_backward, c.attributes, {&x, &c.output_gradient}, x.shape));
  }
  for (Case& c : cases_of("softmax")) {
    Checked checked(c);
    Tensor y = result(Kernel::softmax_forward, c.attributes, {&c.inputs[0]}, c.output.shape);
    checked.output(y);
    checked.input(
        0, result(Kernel::softmax_backward, c.attributes, {&y, &c.output_gradient}, y.shape));
  }
  for (Case& c : cases_of("dropout")) {
    Checked checked(c);
    Tensor dropped = mask(c.output.shape);
    c.attributes.set("p", 0.0);  // "eval" is the identity, as p = 0 is
    Tensor y = unwritten(c.output.shape);
    run(Kernel::dropout_forward, c.attributes, {&c.inputs[0]}, {&y, &dropped});
    checked.output(y);
    checked.input(
        0, result(Kernel::dropout_backward, c.attributes, {&c.output_gradient, &dropped}, y.shape));
  }
}

TEST_CASE("pooling agrees with PyTorch") {
  for (Case& c : cases_of("max_pool2d")) {
    Checked checked(c);
    Tensor& x = c.inputs[0];
    Tensor y = result(Kernel::max_pool_forward, c.attributes, {&x}, c.output.shape);
    checked.output(y);
    checked.input(
        0, result(Kernel::max_pool_backward, c.attributes, {&x, &y, &c.output_gradient}, x.shape));
  }
  for (const auto& [op, forward, backward] :
       {std::tuple{"avg_pool2d", Kernel::avg_pool_forward, Kernel::avg_pool_backward},
        std::tuple{"adaptive_avg_pool2d", Kernel::adaptive_avg_pool_forward,
                   Kernel::adaptive_avg_pool_backward}}) {
    for (Case& c : cases_of(op)) {
      Checked checked(c);
      Tensor& x = c.inputs[0];
      checked.output(result(forward, c.attributes, {&x}, c.output.shape));
      checked.input(0, result(backward, c.attributes, {&c.output_gradient}, x.shape));
    }
  }
}

TEST_CASE("broadcasting sums and products agree with PyTorch") {
  for (Case& c : cases_of("add")) {
    Checked checked(c);
    Tensor& dy = c.output_gradient;
    checked.output(result(Kernel::add, none, {&c.inputs[0], &c.inputs[1]}, c.output.shape));
    checked.input(0, result(Kernel::sum_to_shape, none, {&dy}, c.inputs[0].shape));
    checked.input(1, result(Kernel::sum_to_shape, none, {&dy}, c.inputs[1].shape));
  }
  for (Case& c : cases_of("mul")) {
    Checked checked(c);
    Tensor &a = c.inputs[0], &b = c.inputs[1], &dy = c.output_gradient;
    checked.output(result(Kernel::multiply, none, {&a, &b}, c.output.shape));
    Tensor da = result(Kernel::multiply, none, {&dy, &b}, dy.shape);
    Tensor db = result(Kernel::multiply, none, {&dy, &a}, dy.shape);
    checked.input(0, result(Kernel::sum_to_shape, none, {&da}, a.shape));
    checked.input(1, result(Kernel::sum_to_shape, none, {&db}, b.shape));
  }
}

TEST_CASE("layout operators agree with PyTorch") {
  for (Case& c : cases_of("concat")) {
    Checked checked(c);
    std::int64_t axis = c.attributes.integer("axis"), start = 0;
    if (axis < 0) axis += static_cast<std::int64_t>(c.output.shape.size());
    std::vector<Tensor*> parts;
    for (Tensor& part : c.inputs) parts.push_back(&part);
    const Attributes along = attributes_of({{"axis", axis}});
    checked.output(result(Kernel::concatenate, along, parts, c.output.shape));
    for (std::size_t i = 0; i < c.inputs.size(); ++i) {
      const Attributes from = attributes_of({{"axis", axis}, {"start", start}});
      checked.input(i, result(Kernel::slice, from, {&c.output_gradient}, c.inputs[i].shape));
      start += c.inputs[i].shape[static_cast<std::size_t>(axis)];
    }
  }
  for (const char* op : {"reshape", "flatten"}) {
    for (Case& c : cases_of(op)) {
      Checked checked(c);
      checked.output(result(Kernel::copy, none, {&c.inputs[0]}, c.output.shape));
      checked.input(0, result(Kernel::copy, none, {&c.output_gradient}, c.inputs[0].shape));
    }
  }
  for (Case& c : cases_of("transpose")) {
    Checked checked(c);
    const Sizes axes = c.attributes.integers("axes");
    Sizes inverse(axes.size());
    for (std::size_t i = 0; i < axes.size(); ++i) {
      inverse[static_cast<std::size_t>(axes[i])] = static_cast<std::int64_t>(i);
    }
    checked.output(result(Kernel::permute, c.attributes, {&c.inputs[0]}, c.output.shape));
    checked.input(0, result(Kernel::permute, attributes_of({{"axes", inverse}}),
                            {&c.output_gradient}, c.inputs[0].shape));
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
    checked.output(result(Kernel::matmul, none, {&p, &v}, c.output.shape));
    Tensor dp = result(Kernel::matmul, transpose_b, {&dy, &v}, shape);
    Tensor ds = result(Kernel::softmax_backward, causal, {&p, &dp}, shape);
    checked.input(0, result(Kernel::matmul, scaled, {&ds, &k}, q.shape));
    checked.input(1,
                  result(Kernel::matmul, attributes_of({{"alpha", scale}, {"transpose_a", true}}),
                         {&ds, &q}, k.shape));
    checked.input(2, result(Kernel::matmul, transpose_a, {&p, &dy}, v.shape));
  }
}

TEST_CASE("losses agree with PyTorch") {
  for (Case& c : cases_of("cross_entropy")) {
    Checked checked(c);
    Tensor &x = c.inputs[0], &target = c.inputs[1];
    Tensor loss = unwritten({}), logsumexp = unwritten(target.shape);
    run(Kernel::cross_entropy_forward, c.attributes, {&x, &target}, {&loss, &logsumexp});
    checked.output(loss);
    c.attributes.set("scale", 1.0);
    checked.input(0, result(Kernel::cross_entropy_backward, c.attributes, {&x, &target, &logsumexp},
                            x.shape));
  }
  for (Case& c : cases_of("mse")) {
    Checked checked(c);
    Tensor &x = c.inputs[0], &target = c.inputs[1];
    checked.output(result(Kernel::mse_forward, none, {&x, &target}, {}));
    checked.input(
        0, result(Kernel::mse_backward, attributes_of({{"scale", 1.0}}), {&x, &target}, x.shape));
  }
}

TEST_CASE("optimizers agree with PyTorch over three updates") {
  for (OptimizerCase& c : optimizer_cases()) {
    Tensor p = c.parameter;
    const Tensor zero = tensor(p.shape, std::vector<float>(p.floats.size(), 0));
    const bool adam = c.op != "sgd";
    std::vector<Tensor> state(c.steps[0].state.size(), zero);
    CHECK(state.size() == (adam ? 2U : c.attributes.has("momentum") ? 1U : 0U));
    for (std::size_t step = 0; step < c.steps.size(); ++step) {
      OptimizerStep& expected = c.steps[step];
      c.attributes.set("step", static_cast<std::int64_t>(step + 1));
      std::vector<Tensor*> reads{&p, &expected.gradient}, writes{&p};
      for (Tensor& s : state) {
        reads.push_back(&s);
        writes.push_back(&s);
      }
      run(adam ? Kernel::adam_update : Kernel::sgd_update, c.attributes, reads, writes);
      CHECK_MESSAGE(distance(p, expected.parameter) <= tolerance, c.name, ", step ", step + 1);
      for (std::size_t i = 0; i < state.size(); ++i) {
        CHECK_MESSAGE(distance(state[i], expected.state[i].second) <= tolerance, c.name, ", ",
                      expected.state[i].first);
      }
    }
  }
}

TEST_CASE("no operator of the reference is left out") {
  const std::vector<std::string> tested{"adaptive_avg_pool2d",
                                        "add",
                                        "avg_pool2d",
                                        "batch_norm",
                                        "concat",
                                        "conv2d",
                                        "conv_transpose2d",
                                        "cross_entropy",
                                        "dropout",
                                        "embedding",
                                        "flatten",
                                        "gelu",
                                        "layer_norm",
                                        "linear",
                                        "matmul",
                                        "max_pool2d",
                                        "mse",
                                        "mul",
                                        "relu",
                                        "reshape",
                                        "scaled_dot_product_attention",
                                        "softmax",
                                        "transpose"};
  CHECK(reference_operators() == tested);
  MESSAGE("largest relative distance from PyTorch: ", worst_distance());
}

}  // namespace stowage::test
