// Arithmetic of two and three tensors that PyTorch has kernels of its own for: maximum and minimum,
// addcmul and addcdiv, with broadcasting. Our executor runs the latter two as products, quotients
// and sums.
//
// Autograd's formulas (tools/autograd/derivatives.yaml) make all gradients of a node before the
// engine sums those of broadcast operands.
#include <fmt/format.h>

#include <array>
#include <optional>

#include "estimator/catalogue/elementwise.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"

namespace stowage {

namespace {

tl::expected<Inference, InferenceError> infer_combined(std::span<const TensorType> inputs,
                                                       std::int64_t flops) {
  TensorType y = inputs[0];
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (auto error = want_floating(inputs[i], static_cast<int>(i))) return tl::unexpected(*error);
    const auto shape = broadcast(y.shape, inputs[i].shape);
    if (!shape) {
      return refuse(fmt::format("the shapes {} and {} do not go together", to_string(y.shape),
                                to_string(inputs[i].shape)),
                    {}, static_cast<int>(i));
    }
    y = {*shape, promoted(y, inputs[i])};
  }
  Inference result;
  result.flops = element_count(y.shape) * Affine(flops);
  result.outputs = {std::move(y)};
  return result;
}

tl::expected<Inference, InferenceError> infer_extremum_of_two(const Attributes&,
                                                              std::span<const TensorType> inputs) {
  return infer_combined(inputs, 1);
}
tl::expected<Inference, InferenceError> infer_addition(const Attributes&,
                                                       std::span<const TensorType> inputs) {
  return infer_combined(inputs, 3);
}

/// The first input with the result's shape decides the result's memory order.
TensorView new_combined(OperatorLowering& lowering) {
  for (int i = 0; i < lowering.input_count(); ++i) {
    if (lowering.input(i).shape == lowering.output_type().shape) {
      return new_output_like(lowering, lowering.input(i));
    }
  }
  return lowering.new_output();
}

/// Makes an intermediate tensor of the operands' broadcast shape.
TensorView combined_step(OperatorLowering& lowering, Kernel kernel, std::string_view name,
                         const std::vector<TensorView>& reads, StorageClass storage_class,
                         NodeExtras extras = {}) {
  TensorType type{reads[0].shape, reads[0].type};
  for (const TensorView& read : reads) {
    const TensorType other{read.shape, read.type};
    type = {*broadcast(type.shape, read.shape), promoted(type, other)};
  }
  TensorView y = lowering.new_tensor(name, type.shape, type.type, storage_class);
  for (const TensorView& read : reads) {
    if (read.shape != type.shape) continue;
    y = ordered_like(y, read);
    break;
  }
  extras.flops = element_count(type.shape);
  lowering.emit(kernel, name, reads, {y}, std::move(extras));
  return y;
}

NodeExtras factor_of(double factor) {
  NodeExtras extras;
  extras.attributes.set("factor", factor);
  extras.attributes.set("offset", 0.0);
  return extras;
}

// maximum and minimum.

Kernel extremum_kernel(const OperatorLowering& lowering) {
  return lowering.op().row->name == "maximum" ? Kernel::maximum : Kernel::minimum;
}

void forward_extremum_of_two(OperatorLowering& lowering) {
  const TensorView a = lowering.input(0), b = lowering.input(1);
  const TensorView y = new_combined(lowering);
  lowering.emit(extremum_kernel(lowering), "forward", {a, b}, {y},
                {.flops = element_count(y.shape)});
  lowering.save("self", a);
  lowering.save("other", b);
}

/// where(self == other, grad / 2, grad).masked_fill_(self < other, 0): two masks and the half.
std::vector<StorageId> extremum_formula(OperatorLowering& lowering, const TensorView& dy) {
  return {lowering.new_temporary("masks", element_count(dy.shape) * Affine(2)),
          lowering.new_temporary("half", byte_count(dy))};
}
std::vector<StorageId> extremum_kernel_alone(OperatorLowering&, const TensorView&) { return {}; }

using ExtremumTemporaries = std::vector<StorageId> (*)(OperatorLowering& lowering,
                                                       const TensorView& dy);

template <ExtremumTemporaries temporaries, GiveGradient give>
void backward_extremum_of_two(OperatorLowering& lowering) {
  const TensorView dy = lowering.output_gradient();
  const std::array<TensorView, 2> operands{lowering.saved("self"), lowering.saved("other")};
  std::array<std::optional<TensorView>, 2> gradients;
  for (std::size_t i = 0; i < 2; ++i) {
    if (!lowering.input_needs_gradient(static_cast<int>(i))) continue;
    NodeExtras extras{.temporaries = temporaries(lowering, dy)};
    extras.attributes.set("operation", std::string(lowering.op().row->name));
    gradients[i] = ordered_like(lowering.new_tensor(fmt::format("grad_share{}", i), dy.shape,
                                                    dy.type, StorageClass::activation_gradient),
                                dy);
    extras.flops = element_count(dy.shape);
    lowering.emit(Kernel::extremum_backward, fmt::format("backward.share{}", i),
                  {operands[i], operands[1 - i], dy}, {*gradients[i]}, std::move(extras));
  }
  for (std::size_t i = 0; i < 2; ++i) {
    if (gradients[i]) give(lowering, static_cast<int>(i), *gradients[i]);
  }
}

// addcmul: a + value b c, and addcdiv: a + value b / c.

double combined_value(const OperatorLowering& lowering) {
  return lowering.attributes().real("value");
}
bool divides(const OperatorLowering& lowering) { return lowering.op().row->name == "addcdiv"; }

void save_combined(OperatorLowering& lowering) {
  if (lowering.input_needs_gradient(1) || divides(lowering)) {
    lowering.save("tensor2", lowering.input(2));
  }
  if (lowering.input_needs_gradient(2)) lowering.save("tensor1", lowering.input(1));
}

void forward_combined_pytorch(OperatorLowering& lowering) {
  const TensorView y = new_combined(lowering);
  lowering.emit(Kernel::add, "forward", {lowering.input(0), lowering.input(1), lowering.input(2)},
                {y}, {.flops = element_count(y.shape) * Affine(3)});
  save_combined(lowering);
}

void forward_combined_stowage(OperatorLowering& lowering) {
  TensorView product =
      combined_step(lowering, divides(lowering) ? Kernel::divide : Kernel::multiply, "product",
                    {lowering.input(1), lowering.input(2)}, StorageClass::activation);
  if (combined_value(lowering) != 1) {
    product = combined_step(lowering, Kernel::scale, "scaled", {product}, StorageClass::activation,
                            factor_of(combined_value(lowering)));
  }
  lowering.emit(Kernel::add, "forward", {lowering.input(0), product}, {lowering.new_output()},
                {.flops = element_count(lowering.output_type().shape)});
  save_combined(lowering);
}

TensorView combined_gradient(OperatorLowering& lowering, Kernel kernel, const std::string& name,
                             const std::vector<TensorView>& reads, NodeExtras extras = {}) {
  return combined_step(lowering, kernel, name, reads, StorageClass::activation_gradient,
                       std::move(extras));
}

using TwoGradients = std::array<std::optional<TensorView>, 3>;

TwoGradients addcmul_gradients(OperatorLowering& lowering) {
  const TensorView dy = lowering.output_gradient();
  TwoGradients gradients;
  for (const int i : {1, 2}) {
    if (!lowering.input_needs_gradient(i)) continue;
    const TensorView other = lowering.saved(i == 1 ? "tensor2" : "tensor1");
    const TensorView scaled =
        combined_gradient(lowering, Kernel::scale, fmt::format("backward.factor{}", i), {other},
                          factor_of(combined_value(lowering)));
    gradients[static_cast<std::size_t>(i)] = combined_gradient(
        lowering, Kernel::multiply, fmt::format("backward.product{}", i), {dy, scaled});
  }
  return gradients;
}

/// value / tensor2, then -grad (value tensor1 / tensor2^2), whose parts live to its end.
TwoGradients addcdiv_gradients(OperatorLowering& lowering) {
  const TensorView dy = lowering.output_gradient(), divisor = lowering.saved("tensor2");
  const auto factor = factor_of(combined_value(lowering));
  TwoGradients gradients;
  if (lowering.input_needs_gradient(1)) {
    NodeExtras power;
    power.attributes.set("function", std::string("reciprocal"));
    TensorView ratio =
        combined_gradient(lowering, Kernel::unary_forward, "backward.ratio", {divisor}, power);
    if (combined_value(lowering) != 1) {
      lowering.emit(Kernel::scale, "backward.ratio.scaled", {ratio}, {ratio}, factor);
    }
    gradients[1] = combined_gradient(lowering, Kernel::multiply, "backward.dividend", {dy, ratio});
  }
  if (lowering.input_needs_gradient(2)) {
    const TensorView square =
        combined_gradient(lowering, Kernel::multiply, "backward.square", {divisor, divisor});
    const TensorView scaled = combined_gradient(lowering, Kernel::scale, "backward.scaled",
                                                {lowering.saved("tensor1")}, factor);
    const TensorView slope =
        combined_gradient(lowering, Kernel::divide, "backward.slope", {scaled, square});
    const TensorView negated =
        combined_gradient(lowering, Kernel::scale, "backward.negated", {dy}, factor_of(-1));
    NodeExtras held{.holds = {square.storage, scaled.storage}};
    gradients[2] = combined_gradient(lowering, Kernel::multiply, "backward.divisor",
                                     {negated, slope}, std::move(held));
  }
  return gradients;
}

template <GiveGradient give>
void backward_combined(OperatorLowering& lowering) {
  const TwoGradients gradients =
      divides(lowering) ? addcdiv_gradients(lowering) : addcmul_gradients(lowering);
  if (lowering.input_needs_gradient(0)) give(lowering, 0, lowering.output_gradient());
  for (const int i : {1, 2}) {
    const auto& gradient = gradients[static_cast<std::size_t>(i)];
    if (gradient) give(lowering, i, *gradient);
  }
}

OperatorRow extremum_of_two_row(std::string_view name, std::string_view doc) {
  return {.name = name,
          .doc = doc,
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = infer_extremum_of_two,
          .lowering = {
              .stowage = {forward_extremum_of_two,
                          backward_extremum_of_two<extremum_kernel_alone, give_broadcast_gradient>},
              .pytorch = {forward_extremum_of_two,
                          backward_extremum_of_two<extremum_formula, give_converted_gradient>}}};
}

OperatorRow addition_row(std::string_view name, std::string_view doc) {
  return {.name = name,
          .doc = doc,
          .attributes = {{.name = "value",
                          .type = AttributeType::real,
                          .doc = "factor of what is added",
                          .default_value = 1.0}},
          .min_inputs = 3,
          .max_inputs = 3,
          .infer = infer_addition,
          .lowering = {
              .stowage = {forward_combined_stowage, backward_combined<give_broadcast_gradient>},
              .pytorch = {forward_combined_pytorch, backward_combined<give_converted_gradient>}}};
}

}  // namespace

OperatorRow rows::maximum() {
  return extremum_of_two_row("maximum", "the larger of two tensors' elements, broadcast");
}
OperatorRow rows::minimum() {
  return extremum_of_two_row("minimum", "the smaller of two tensors' elements, broadcast");
}
OperatorRow rows::addcmul() {
  return addition_row("addcmul", "a + value b c, element by element, broadcast");
}
OperatorRow rows::addcdiv() {
  return addition_row("addcdiv", "a + value b / c, element by element, broadcast");
}

}  // namespace stowage
