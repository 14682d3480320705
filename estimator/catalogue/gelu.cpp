// gelu. `none` and `tanh` are single kernels that save their input. `tanh_composite` is the tanh
// form written out in Python, as Hugging Face's NewGELUActivation does
//   0.5 * x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x^3)))
// which in eager PyTorch is eight kernels that save four tensors; our executor runs it as one.
// Under autocast the power alone is of the fp32 class, and all that follows from it is wide.
#include <array>

#include "estimator/catalogue/elementwise.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage {

namespace {

constexpr std::int64_t gelu_flops = 12;  // an element

bool is_composite_gelu(const OperatorLowering& lowering) {
  return lowering.attributes().text("approximate") == "tanh_composite";
}

tl::expected<Inference, InferenceError> infer_gelu(const Attributes&,
                                                   std::span<const TensorType> inputs) {
  return infer_elementwise(inputs, gelu_flops);
}

void forward_gelu_composite(OperatorLowering& lowering) {
  const TensorView x = lowering.input();
  const DataType wide_type = lowering.output_type().type;
  const auto step = [&](Kernel kernel, std::string_view name, DataType type,
                        std::vector<TensorView> reads) {
    const TensorView result = lowering.new_tensor(name, x.shape, type, StorageClass::activation);
    lowering.emit(kernel, name, std::move(reads), {result}, {.flops = element_count(x.shape)});
    return result;
  };
  const TensorView half = step(Kernel::multiply, "half", x.type, {x});
  const TensorView wide = lowering.cast(x, wide_type, "input.cast");
  const TensorView cube = step(Kernel::multiply, "cube", wide_type, {wide});
  const TensorView scaled_cube = step(Kernel::multiply, "scaled_cube", wide_type, {cube});
  const TensorView sum = step(Kernel::add, "sum", wide_type, {x, scaled_cube});
  const TensorView inner = step(Kernel::multiply, "inner", wide_type, {sum});
  const TensorView tanh = step(Kernel::gelu_forward, "tanh", wide_type, {inner});
  const TensorView one_plus = step(Kernel::add, "one_plus", wide_type, {tanh});
  const TensorView y = lowering.new_output();
  lowering.emit(Kernel::multiply, "forward", {half, one_plus}, {y},
                {.flops = element_count(x.shape)});
  lowering.save("input", wide);
  lowering.save("tanh", tanh);
  lowering.save("half", half);
  lowering.save("one_plus", one_plus);
}

// Eight autograd nodes, latest first; each lets go of what it saved when it returns. Where the
// input is narrower, the gradient of each of its three uses is converted on its way there.
void backward_gelu_composite(OperatorLowering& lowering) {
  lowering.hold_by_hand();
  const TensorView wide = lowering.saved("input");
  const TensorView half = lowering.saved("half");
  const TensorView one_plus = lowering.saved("one_plus");
  const TensorView dy = lowering.output_gradient();
  const DataType narrow = lowering.input().type;
  const auto step = [&](Kernel kernel, std::string_view name, std::vector<TensorView> reads,
                        std::vector<StorageId> holds = {}) {
    const TensorView result = lowering.new_tensor(name, wide.shape, reads.front().type,
                                                  StorageClass::activation_gradient);
    lowering.emit(kernel, name, std::move(reads), {result},
                  {.holds = std::move(holds), .flops = element_count(wide.shape)});
    return result;
  };
  const auto accumulate = [&](std::string_view name, const TensorView& sum,
                              const TensorView& more) {
    lowering.emit(Kernel::accumulate, name, {sum, more}, {sum},
                  {.flops = element_count(wide.shape)});
  };
  const TensorView d_half = step(Kernel::multiply, "backward.half", {dy, one_plus});
  const TensorView d_plus = step(Kernel::multiply, "backward.plus", {dy, half}, {one_plus.storage});
  const TensorView d_half_narrow = lowering.cast(d_half, narrow, "backward.half.cast");
  if (d_half.type != narrow) {
    lowering.also_hold(std::array{dy.storage, half.storage, one_plus.storage});
  }
  const TensorView d_inner =
      step(Kernel::gelu_backward, "backward.tanh", {d_plus, lowering.saved("tanh")});
  const TensorView d_sum = step(Kernel::multiply, "backward.inner", {d_inner});
  const TensorView d_input = lowering.cast(d_sum, narrow, "backward.sum.cast");
  const TensorView d_cube = step(Kernel::multiply, "backward.scaled_cube", {d_sum});
  const TensorView square = step(Kernel::multiply, "backward.square", {wide});
  const TensorView slope = step(Kernel::multiply, "backward.slope", {square}, {d_cube.storage});
  const TensorView d_power =
      step(Kernel::multiply, "backward.power", {d_cube, slope}, {wide.storage, square.storage});
  accumulate("backward.sum", d_input, lowering.cast(d_power, narrow, "backward.power.cast"));
  const TensorView d_scaled = step(Kernel::multiply, "backward.scaled", {d_half_narrow});
  accumulate("backward.total", d_input, d_scaled);
  lowering.give_input_gradient(0, d_input);
}

AutocastClass gelu_autocast(const Attributes& attributes) {
  return attributes.text("approximate") == "tanh_composite" ? AutocastClass::float32
                                                            : AutocastClass::as_is;
}

void forward_gelu_fused(OperatorLowering& lowering) {
  const TensorView x = lowering.input();
  const TensorView y = new_output_like(lowering, x);
  lowering.emit(Kernel::gelu_forward, "forward", {x}, {y},
                {.flops = element_count(x.shape) * Affine(gelu_flops)});
  lowering.save("input", x);
}

void backward_gelu_fused(OperatorLowering& lowering) {
  const TensorView dy = lowering.output_gradient();
  const TensorView dx = new_input_gradient_like(lowering, dy);
  lowering.emit(Kernel::gelu_backward, "backward", {lowering.saved("input"), dy}, {dx},
                {.flops = element_count(dx.shape) * Affine(gelu_flops)});
  lowering.give_input_gradient(0, dx);
}

void forward_gelu_pytorch(OperatorLowering& lowering) {
  if (is_composite_gelu(lowering)) return forward_gelu_composite(lowering);
  forward_gelu_fused(lowering);
}

void backward_gelu_pytorch(OperatorLowering& lowering) {
  if (is_composite_gelu(lowering)) return backward_gelu_composite(lowering);
  backward_gelu_fused(lowering);
}

}  // namespace

OperatorRow rows::gelu() {
  return {.name = "gelu",
          .doc = "Gaussian error linear unit",
          .attributes = {{.name = "approximate",
                          .type = AttributeType::choice,
                          .doc = "exact, the tanh form, or the tanh form written out in Python",
                          .default_value = std::string("none"),
                          .choices = {"none", "tanh", "tanh_composite"}}},
          .infer = infer_gelu,
          .lowering = {.stowage = {forward_gelu_fused, backward_gelu_fused},
                       .pytorch = {forward_gelu_pytorch, backward_gelu_pytorch, true}},
          .autocast_by_attributes = gelu_autocast};
}

}  // namespace stowage
