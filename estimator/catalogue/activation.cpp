// Activations with more than one tensor: prelu, whose slope is learned; glu and swiglu, where one
// tensor gates another.
//
// PyTorch's prelu makes a gradient of the slope for every element, which the engine then sums.
// swiglu is what transformers' LlamaMLP writes, act(gate) * up: two autograd nodes, which save the
// gate, its activation and the other factor; our executor keeps gate and factor only where both
// come in one tensor.
#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "estimator/catalogue/argument_view.hpp"
#include "estimator/catalogue/elementwise.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"

namespace stowage {

namespace {

tl::expected<Inference, InferenceError> infer_prelu(const Attributes& attributes,
                                                    std::span<const TensorType> inputs) {
  auto result = infer_elementwise(inputs, 2);
  if (!result) return result;
  const std::int64_t count = attributes.integer("parameters");
  const Shape& x = inputs[0].shape;
  if (count != 1 && (x.size() < 2 || x[1] != Affine(count))) {
    return refuse(
        fmt::format("has {} slopes, but axis 1 of {} is not {} wide", count, to_string(x), count),
        "parameters", 0);
  }
  result->parameters.push_back({.name = "weight", .shape = {count}});
  return result;
}

void forward_prelu(OperatorLowering& lowering) {
  const TensorView x = lowering.input();
  const TensorView w = lowering.parameter(0);
  lowering.emit(Kernel::prelu_forward, "forward", {x, w}, {new_output_like(lowering, x)},
                {.flops = element_count(x.shape) * Affine(2)});
  lowering.save("input", x);
  lowering.save("weight", w);
}

/// `dw`: of the slopes, or of each element's.
void emit_prelu_gradient(OperatorLowering& lowering, const TensorView& dx, const TensorView& dw) {
  const TensorView x = lowering.saved("input");
  lowering.emit(Kernel::prelu_backward, "backward",
                {x, lowering.saved("weight"), lowering.output_gradient()}, {dx, dw},
                {.flops = element_count(x.shape) * Affine(3)});
}

void backward_prelu_stowage(OperatorLowering& lowering) {
  const TensorView x = lowering.saved("input");
  const TensorView dx = new_input_gradient_like(lowering, x);
  const bool trains = lowering.parameter_needs_gradient(0);
  const TensorView dw = trains ? lowering.new_parameter_gradient(0)
                               : lowering.new_tensor("grad_slopes", lowering.saved("weight").shape,
                                                     x.type, StorageClass::activation_gradient);
  emit_prelu_gradient(lowering, dx, dw);
  if (lowering.input_needs_gradient()) lowering.give_input_gradient(0, dx);
  if (trains) lowering.give_parameter_gradient(0, dw);
}

void backward_prelu_pytorch(OperatorLowering& lowering) {
  const TensorView x = lowering.saved("input");
  const TensorView dx = new_input_gradient_like(lowering, x);
  const TensorView each =
      lowering.new_tensor("grad_slopes", x.shape, x.type, StorageClass::activation_gradient);
  emit_prelu_gradient(lowering, dx, each);
  std::optional<TensorView> dw;
  if (lowering.parameter_needs_gradient(0)) {
    dw = lowering.new_parameter_gradient(0);
    lowering.emit(Kernel::sum_to_shape, "backward.sum", {each}, {*dw},
                  {.flops = element_count(x.shape)});
  }
  if (lowering.input_needs_gradient()) lowering.give_input_gradient(0, dx);
  if (dw) lowering.give_parameter_gradient(0, *dw);
}

// Half of the input along the axis.
tl::expected<Inference, InferenceError> infer_halves(const Attributes& attributes,
                                                     const TensorType& x, std::int64_t flops) {
  if (auto error = want_floating(x)) return tl::unexpected(*error);
  const auto axis = resolve_axis(attributes.integer("axis"), x.shape.size());
  if (!axis) {
    return refuse(fmt::format("axis {} is outside its input's shape {}", attributes.integer("axis"),
                              to_string(x.shape)),
                  "axis", 0);
  }
  if (auto error = want_constant(x.shape[*axis], "halved axis")) return tl::unexpected(*error);
  if (x.shape[*axis].constant % 2 != 0) {
    return refuse(fmt::format("axis {} of {} has no two halves", *axis, to_string(x.shape)), "axis",
                  0);
  }
  Shape y = x.shape;
  y[*axis] = x.shape[*axis].constant / 2;
  Inference result;
  result.outputs = {{y, x.type}};
  result.flops = element_count(y) * Affine(flops);
  return result;
}

constexpr std::int64_t gate_flops = 6;  // an element of the result

tl::expected<Inference, InferenceError> infer_glu(const Attributes& attributes,
                                                  std::span<const TensorType> inputs) {
  return infer_halves(attributes, inputs[0], gate_flops);
}

tl::expected<Inference, InferenceError> infer_swiglu(const Attributes& attributes,
                                                     std::span<const TensorType> inputs) {
  if (inputs.size() == 1) return infer_halves(attributes, inputs[0], gate_flops);
  for (int i = 0; i < 2; ++i) {
    if (auto error = want_floating(inputs[static_cast<std::size_t>(i)], i)) {
      return tl::unexpected(*error);
    }
  }
  const auto shape = broadcast(inputs[0].shape, inputs[1].shape);
  if (!shape) {
    return refuse(fmt::format("the shapes {} and {} do not go together", to_string(inputs[0].shape),
                              to_string(inputs[1].shape)),
                  {}, 1);
  }
  Inference result;
  result.outputs = {{*shape, promoted(inputs[0], inputs[1])}};
  result.flops = element_count(inputs[0].shape) * Affine(gate_flops - 1) + element_count(*shape);
  return result;
}

Attributes gate_attributes(const OperatorLowering& lowering, const TensorView& x, bool swiglu) {
  Attributes attributes;
  const std::int64_t axis = lowering.attributes().integer("axis");
  attributes.set("axis", axis < 0 ? axis + std::ssize(x.shape) : axis);
  attributes.set("gate", std::string(swiglu ? "silu" : "sigmoid"));
  attributes.set("first_is_gate", swiglu);
  return attributes;
}

bool is_swiglu(const OperatorLowering& lowering) { return lowering.op().row->name == "swiglu"; }

// One kernel over both halves.
void forward_glu(OperatorLowering& lowering) {
  const TensorView x = input_view(lowering, Kernel::glu_forward);
  const TensorView y = lowering.new_output_like(lowering.input());
  lowering.emit(Kernel::glu_forward, "forward", {x}, {y},
                {.attributes = gate_attributes(lowering, x, is_swiglu(lowering)),
                 .flops = element_count(y.shape) * Affine(gate_flops)});
  lowering.save("input", lowering.input());
}

void backward_glu(OperatorLowering& lowering) {
  const TensorView x = lowering.saved("input");
  const TensorView dy = lowering.output_gradient();
  const TensorView dx = lowering.new_input_gradient();
  lowering.emit(Kernel::glu_backward, "backward", {x, dy}, {dx},
                {.attributes = gate_attributes(lowering, x, is_swiglu(lowering)),
                 .flops = element_count(dy.shape) * Affine(2 * gate_flops)});
  lowering.give_input_gradient(0, dx);
}

Attributes silu() {
  Attributes attributes;
  attributes.set("function", std::string("silu"));
  return attributes;
}

// The gate and the other factor: two inputs, or the two halves of one.
std::array<TensorView, 2> gate_factors(const OperatorLowering& lowering) {
  const TensorView x = lowering.input(0);
  if (lowering.input_count() == 2) return {x, lowering.input(1)};
  const std::size_t axis = *resolve_axis(lowering.attributes().integer("axis"), x.shape.size());
  const Affine half = lowering.output_type().shape[axis];
  return {sliced(x, axis, 0, half), sliced(x, axis, half, half)};
}

void forward_silu_and_product(OperatorLowering& lowering) {
  const auto [gate, up] = gate_factors(lowering);
  const Shape& shape = lowering.output_type().shape;
  const TensorView activated = ordered_like(
      lowering.new_tensor("activated", gate.shape, gate.type, StorageClass::activation), gate);
  lowering.emit(
      Kernel::unary_forward, "silu", {gate}, {activated},
      {.attributes = silu(), .flops = element_count(gate.shape) * Affine(gate_flops - 1)});
  lowering.emit(Kernel::multiply, "forward", {activated, up},
                {new_output_like(lowering, activated.shape == shape ? activated : up)},
                {.flops = element_count(shape)});
  if (lowering.input_needs_gradient(0)) {
    lowering.save("gate", gate);
    lowering.save("up", up);
  }
  if (lowering.input_needs_gradient(lowering.input_count() - 1)) {
    lowering.save("activated", activated);
  }
}

/// Both halves of one input are one kernel's.
void forward_swiglu_stowage(OperatorLowering& lowering) {
  if (lowering.input_count() == 1) return forward_glu(lowering);
  forward_silu_and_product(lowering);
}

/// A factor's gradient on its way: summed where the factor was repeated, then in its own format.
TensorView through_product(OperatorLowering& lowering, const TensorView& product,
                           const TensorView& of, const std::string& name,
                           const std::vector<StorageId>& holds) {
  TensorView result = product;
  if (product.shape != of.shape) {
    result = lowering.new_tensor(name + ".sum", of.shape, product.type,
                                 StorageClass::activation_gradient);
    lowering.emit(Kernel::sum_to_shape, "backward." + name + ".sum", {product}, {result},
                  {.holds = holds, .flops = element_count(product.shape)});
  }
  if (result.type == of.type) return result;
  const TensorView converted = lowering.cast(result, of.type, name + ".cast");
  lowering.also_hold(holds);
  return converted;
}

// Two autograd nodes: the product lets go of its factors before the gate's gradient is made.
// `holds`: by the product's node.
void backward_silu_and_product(OperatorLowering& lowering, const std::vector<StorageId>& holds) {
  lowering.hold_by_hand();
  const bool one_input = lowering.input_count() == 1;
  const TensorView dy = lowering.output_gradient();
  const auto product = [&](const std::string& name, const TensorView& factor) {
    const TensorView result =
        ordered_like(lowering.new_tensor(name, dy.shape, promoted(dy.type, factor.type),
                                         StorageClass::activation_gradient),
                     dy);
    lowering.emit(Kernel::multiply, "backward." + name, {dy, factor}, {result},
                  {.holds = holds, .flops = element_count(dy.shape)});
    return result;
  };
  std::optional<TensorView> d_activated, d_up, d_gate;
  if (lowering.has_saved("up")) d_activated = product("grad_activated", lowering.saved("up"));
  if (lowering.has_saved("activated")) d_up = product("grad_up", lowering.saved("activated"));
  if (d_activated) {
    d_activated =
        through_product(lowering, *d_activated, lowering.saved("gate"), "grad_activated", holds);
  }
  if (d_up && !one_input) {
    d_up = through_product(lowering, *d_up, lowering.input(1), "grad_up", holds);
  }
  if (d_activated) {
    const TensorView gate = lowering.saved("gate");
    d_gate = ordered_like(
        lowering.new_tensor("grad_gate", gate.shape, gate.type, StorageClass::activation_gradient),
        *d_activated);
    lowering.emit(Kernel::unary_backward, "backward.silu", {gate, *d_activated}, {*d_gate},
                  {.attributes = silu(), .flops = element_count(gate.shape) * Affine(gate_flops)});
  }
  if (!one_input) {
    if (d_up) lowering.give_input_gradient(1, *d_up);
    if (d_gate) lowering.give_input_gradient(0, *d_gate);
    return;
  }
  const TensorView dx = lowering.new_input_gradient();
  lowering.emit(Kernel::concatenate, "backward", {*d_gate, *d_up}, {dx},
                {.attributes = gate_attributes(lowering, dx, true)});
  lowering.give_input_gradient(0, dx);
}

void backward_swiglu_stowage(OperatorLowering& lowering) {
  if (lowering.input_count() == 1) return backward_glu(lowering);
  backward_silu_and_product(lowering, {});
}

void backward_swiglu_pytorch(OperatorLowering& lowering) {
  std::vector<StorageId> holds{lowering.output_gradient().storage};
  for (const std::string_view role : {"up", "activated"}) {
    if (lowering.has_saved(role)) holds.push_back(lowering.saved(role).storage);
  }
  backward_silu_and_product(lowering, holds);
}

AttributeSpec halved_axis() {
  return {.name = "axis",
          .type = AttributeType::integer,
          .doc = "the axis that is halved; negative counts from the last",
          .default_value = std::int64_t{-1}};
}

}  // namespace

OperatorRow rows::prelu() {
  return {.name = "prelu",
          .doc = "x, scaled by a learned slope where it is negative",
          .attributes = {{.name = "parameters",
                          .type = AttributeType::integer,
                          .doc = "slopes: one, or one a channel (axis 1)",
                          .default_value = std::int64_t{1},
                          .minimum = 1}},
          .infer = infer_prelu,
          .lowering = {.stowage = {forward_prelu, backward_prelu_stowage},
                       .pytorch = {forward_prelu, backward_prelu_pytorch}},
          .autocast = AutocastClass::lower};
}

OperatorRow rows::glu() {
  return {.name = "glu",
          .doc = "the first half of a tensor times the sigmoid of the second",
          .attributes = {halved_axis()},
          .infer = infer_glu,
          .lowering = {.stowage = {forward_glu, backward_glu}}};
}

OperatorRow rows::swiglu() {
  return {.name = "swiglu",
          .doc = "silu(gate) * up: inputs [gate, up], or one tensor of both halves",
          .attributes = {halved_axis()},
          .max_inputs = 2,
          .infer = infer_swiglu,
          .lowering = {.stowage = {forward_swiglu_stowage, backward_swiglu_stowage},
                       .pytorch = {forward_silu_and_product, backward_swiglu_pytorch}}};
}

}  // namespace stowage
