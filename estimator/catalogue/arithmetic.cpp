// add, sub, mul and div of two tensors, with broadcasting. The gradient of a sum is the output's
// own, shared by both inputs; a product saves each operand that the other's gradient needs, and a
// quotient both where the divisor has a gradient.
//
// Operands of two formats, as autocast leaves them, give the promoted one; in place the result has
// the first operand's. As in autograd, a node's gradients are all made before the engine sums those
// of broadcast operands. What an in-place product overwrites although a gradient needs it is copied
// first, as PyTorch does.
#include <fmt/format.h>

#include <array>
#include <optional>

#include "estimator/catalogue/elementwise.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"

namespace stowage {

namespace {

tl::expected<Inference, InferenceError> infer_arithmetic(const Attributes& attributes,
                                                         std::span<const TensorType> inputs) {
  const auto shape = broadcast(inputs[0].shape, inputs[1].shape);
  const bool in_place = attributes.boolean("in_place");
  if (!shape) {
    return refuse(fmt::format("the shapes {} and {} do not go together", to_string(inputs[0].shape),
                              to_string(inputs[1].shape)),
                  {}, 1);
  }
  const bool floating = is_floating_point(inputs[0].type) && is_floating_point(inputs[1].type);
  if (inputs[0].type != inputs[1].type && !floating) {
    return refuse(fmt::format("its inputs are {} and {}", to_string(inputs[0].type),
                              to_string(inputs[1].type)),
                  {}, 1);
  }
  if (in_place && *shape != inputs[0].shape) {
    return refuse(fmt::format("its result {} does not fit into its first input {}",
                              to_string(*shape), to_string(inputs[0].shape)),
                  "in_place", 0);
  }
  Inference result;
  result.outputs = {{*shape, in_place ? inputs[0].type : promoted(inputs[0], inputs[1])}};
  result.flops = element_count(*shape);
  return result;
}

tl::expected<Inference, InferenceError> infer_div(const Attributes& attributes,
                                                  std::span<const TensorType> inputs) {
  for (int i = 0; i < 2; ++i) {
    if (auto error = want_floating(inputs[static_cast<std::size_t>(i)], i)) {
      return tl::unexpected(*error);
    }
  }
  return infer_arithmetic(attributes, inputs);
}

// If the operands have the same memory order, the result has it too.
TensorView new_result(OperatorLowering& lowering) {
  const Shape& shape = lowering.output_type().shape;
  return new_output_like(lowering, lowering.input(lowering.input(0).shape == shape ? 0 : 1));
}

void combine(OperatorLowering& lowering, Kernel kernel, bool in_place) {
  const TensorView a = lowering.input(0);
  if (in_place) lowering.set_output(0, a);
  const TensorView y = in_place ? a : new_result(lowering);
  lowering.emit(in_place && kernel == Kernel::add ? Kernel::accumulate : kernel, "forward",
                {a, lowering.input(1)}, {y}, {.flops = element_count(y.shape)});
}

/// The kernels of our executor that have no in-place form.
void combine_out_of_place(OperatorLowering& lowering, Kernel kernel) {
  lowering.emit(kernel, "forward", {lowering.input(0), lowering.input(1)}, {lowering.new_output()},
                {.flops = element_count(lowering.output_type().shape)});
}

template <InPlaceRule in_place>
void forward_add(OperatorLowering& lowering) {
  combine(lowering, Kernel::add, in_place(lowering));
}

void forward_sub_stowage(OperatorLowering& lowering) {
  combine_out_of_place(lowering, Kernel::subtract);
}
void forward_sub_pytorch(OperatorLowering& lowering) {
  combine(lowering, Kernel::subtract, asked_in_place(lowering));
}

template <GiveGradient give>
void backward_add(OperatorLowering& lowering) {
  for (int i = 0; i < 2; ++i) {
    if (!lowering.input_needs_gradient(i)) continue;
    give(lowering, i, lowering.output_gradient());
  }
}

// Makes an intermediate tensor of the output's shape for a gradient.
TensorView arithmetic_step(OperatorLowering& lowering, Kernel kernel, std::string_view name,
                           const TensorView& a, std::optional<TensorView> b = {},
                           NodeExtras extras = {}) {
  const TensorView dy = lowering.output_gradient();
  const DataType type = b ? promoted({a.shape, a.type}, {b->shape, b->type}) : a.type;
  const TensorView result =
      ordered_like(lowering.new_tensor(fmt::format("grad_{}", name), dy.shape, type,
                                       StorageClass::activation_gradient),
                   dy);
  std::vector<TensorView> reads{a};
  if (b) reads.push_back(*b);
  extras.flops = element_count(dy.shape);
  lowering.emit(kernel, fmt::format("backward.{}", name), std::move(reads), {result},
                std::move(extras));
  return result;
}

NodeExtras negation() {
  NodeExtras extras;
  extras.attributes.set("factor", -1.0);
  extras.attributes.set("offset", 0.0);
  return extras;
}

template <GiveGradient give>
void backward_sub(OperatorLowering& lowering) {
  const TensorView dy = lowering.output_gradient();
  std::optional<TensorView> negated;
  if (lowering.input_needs_gradient(1)) {
    negated = arithmetic_step(lowering, Kernel::scale, "negated", dy, {}, negation());
  }
  if (lowering.input_needs_gradient(0)) give(lowering, 0, dy);
  if (negated) give(lowering, 1, *negated);
}

/// Which factors of a product or quotient backward needs.
struct NeededFactors {
  bool first = false, second = false;
};

NeededFactors of_product(const OperatorLowering& lowering) {
  return {lowering.input_needs_gradient(1), lowering.input_needs_gradient(0)};
}
NeededFactors of_quotient(const OperatorLowering& lowering) {
  return {lowering.input_needs_gradient(1), true};
}

void save_factors(OperatorLowering& lowering, const NeededFactors& needed,
                  const TensorView& first) {
  if (needed.first) lowering.save("self", first);
  if (needed.second) lowering.save("other", lowering.input(1));
}

void forward_factors_stowage(OperatorLowering& lowering, Kernel kernel,
                             const NeededFactors& needed) {
  const TensorView a = lowering.input(0);
  combine_out_of_place(lowering, kernel);
  save_factors(lowering, needed, a);
}

void forward_factors_pytorch(OperatorLowering& lowering, Kernel kernel,
                             const NeededFactors& needed) {
  TensorView a = lowering.input(0);
  const bool in_place = asked_in_place(lowering);
  if (in_place && needed.first && lowering.needs_gradient()) {
    const TensorView copy = ordered_like(
        lowering.new_tensor("input_copy", a.shape, a.type, StorageClass::activation), a);
    lowering.emit(Kernel::copy, "copy", {a}, {copy});
    a = copy;
  }
  combine(lowering, kernel, in_place);
  save_factors(lowering, needed, a);
}

void forward_mul_stowage(OperatorLowering& lowering) {
  forward_factors_stowage(lowering, Kernel::multiply, of_product(lowering));
}
void forward_mul_pytorch(OperatorLowering& lowering) {
  forward_factors_pytorch(lowering, Kernel::multiply, of_product(lowering));
}

template <GiveGradient give>
void backward_mul(OperatorLowering& lowering) {
  const TensorView dy = lowering.output_gradient();
  std::array<std::optional<TensorView>, 2> products;
  for (int i = 0; i < 2; ++i) {
    if (!lowering.input_needs_gradient(i)) continue;
    products[static_cast<std::size_t>(i)] =
        arithmetic_step(lowering, Kernel::multiply, fmt::format("product{}", i), dy,
                        lowering.saved(i == 0 ? "other" : "self"));
  }
  for (int i = 0; i < 2; ++i) {
    if (products[static_cast<std::size_t>(i)]) {
      give(lowering, i, *products[static_cast<std::size_t>(i)]);
    }
  }
}

void forward_div_stowage(OperatorLowering& lowering) {
  forward_factors_stowage(lowering, Kernel::divide, of_quotient(lowering));
}
void forward_div_pytorch(OperatorLowering& lowering) {
  forward_factors_pytorch(lowering, Kernel::divide, of_quotient(lowering));
}

// FunctionsManual.cpp, div_tensor_other_grad: -grad * ((self / other) / other). In PyTorch it is
// one expression, whose parts live to its end.
template <GiveGradient give, bool one_expression>
void backward_div(OperatorLowering& lowering) {
  const TensorView dy = lowering.output_gradient();
  const TensorView other = lowering.saved("other");
  std::array<std::optional<TensorView>, 2> gradients;
  if (lowering.input_needs_gradient(1)) {
    const TensorView negated =
        arithmetic_step(lowering, Kernel::scale, "negated", dy, {}, negation());
    const TensorView ratio =
        arithmetic_step(lowering, Kernel::divide, "ratio", lowering.saved("self"), other);
    const TensorView slope = arithmetic_step(lowering, Kernel::divide, "slope", ratio, other);
    NodeExtras held;
    if (one_expression) held.holds = {ratio.storage};
    gradients[1] =
        arithmetic_step(lowering, Kernel::multiply, "divisor", negated, slope, std::move(held));
  }
  if (lowering.input_needs_gradient(0)) {
    gradients[0] = arithmetic_step(lowering, Kernel::divide, "dividend", dy, other);
  }
  for (int i = 0; i < 2; ++i) {
    const auto& gradient = gradients[static_cast<std::size_t>(i)];
    if (gradient) give(lowering, i, *gradient);
  }
}

OperatorRow arithmetic_row(std::string_view name, std::string_view doc, const RulesBySet& rules) {
  return {.name = name,
          .doc = doc,
          .attributes = {in_place_attribute("overwrite the first input")},
          .min_inputs = 2,
          .max_inputs = 2,
          .infer = infer_arithmetic,
          .lowering = rules};
}

}  // namespace

OperatorRow rows::add() {
  return arithmetic_row(
      "add", "sum of two tensors, broadcast",
      {.stowage = {forward_add<safely_in_place>, backward_add<give_broadcast_gradient>},
       .pytorch = {forward_add<asked_in_place>, backward_add<give_converted_gradient>}});
}

OperatorRow rows::sub() {
  return arithmetic_row("sub", "difference of two tensors, broadcast",
                        {.stowage = {forward_sub_stowage, backward_sub<give_broadcast_gradient>},
                         .pytorch = {forward_sub_pytorch, backward_sub<give_converted_gradient>}});
}

OperatorRow rows::mul() {
  return arithmetic_row("mul", "product of two tensors, element by element, broadcast",
                        {.stowage = {forward_mul_stowage, backward_mul<give_broadcast_gradient>},
                         .pytorch = {forward_mul_pytorch, backward_mul<give_converted_gradient>}});
}

OperatorRow rows::div() {
  OperatorRow result = arithmetic_row(
      "div", "quotient of two tensors, element by element, broadcast",
      {.stowage = {forward_div_stowage, backward_div<give_broadcast_gradient, false>},
       .pytorch = {forward_div_pytorch, backward_div<give_converted_gradient, true>}});
  result.infer = infer_div;
  return result;
}

}  // namespace stowage
