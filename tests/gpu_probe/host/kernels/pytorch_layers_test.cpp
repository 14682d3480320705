// Compares normalisations, activations, pooling and layout operators with PyTorch's values.
#include "tests/gpu_probe/host/kernels/checked_case.hpp"

namespace stowage::test {
namespace {

const Attributes of_no_layer;

}  // namespace

TEST_CASE("batch normalisation agrees with PyTorch") {
  for (Case& c : cases_of("batch_norm")) {
    Tensor &x = c.inputs[0], &w = *c.parameter("weight"), &b = *c.parameter("bias");
    Tensor mean = c.buffers_before[0].second, variance = c.buffers_before[1].second;
    CHECK(c.buffers_before[0].first == "running_mean");
    if (c.attributes.text("mode") == "eval") {
      // The stowage set has no backward kernel for this: statistics are fixed only in inference.
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
    checked.output(result(Kernel::batch_norm_apply, of_no_layer,
                          {&x, &w, &b, &save_mean, &save_invstd}, x.shape));
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
    Tensor y = result(Kernel::relu_forward, of_no_layer, {&c.inputs[0]}, c.output.shape);
    checked.output(y);
    checked.input(0, result(Kernel::relu_backward, of_no_layer, {&y, &c.output_gradient}, y.shape));
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
    c.attributes.set("p", 0.0);  // "eval" is the identity, like p = 0
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
    checked.output(result(Kernel::add, of_no_layer, {&c.inputs[0], &c.inputs[1]}, c.output.shape));
    checked.input(0, result(Kernel::sum_to_shape, of_no_layer, {&dy}, c.inputs[0].shape));
    checked.input(1, result(Kernel::sum_to_shape, of_no_layer, {&dy}, c.inputs[1].shape));
  }
  for (Case& c : cases_of("mul")) {
    Checked checked(c);
    Tensor &a = c.inputs[0], &b = c.inputs[1], &dy = c.output_gradient;
    checked.output(result(Kernel::multiply, of_no_layer, {&a, &b}, c.output.shape));
    Tensor da = result(Kernel::multiply, of_no_layer, {&dy, &b}, dy.shape);
    Tensor db = result(Kernel::multiply, of_no_layer, {&dy, &a}, dy.shape);
    checked.input(0, result(Kernel::sum_to_shape, of_no_layer, {&da}, a.shape));
    checked.input(1, result(Kernel::sum_to_shape, of_no_layer, {&db}, b.shape));
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
      checked.output(result(Kernel::copy, of_no_layer, {&c.inputs[0]}, c.output.shape));
      checked.input(0, result(Kernel::copy, of_no_layer, {&c.output_gradient}, c.inputs[0].shape));
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

}  // namespace stowage::test
