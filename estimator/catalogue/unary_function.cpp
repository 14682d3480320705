#include "estimator/catalogue/unary_function.hpp"

#include <fmt/format.h>

#include <array>
#include <cassert>
#include <cmath>
#include <optional>
#include <utility>

#include "estimator/catalogue/elementwise.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"

namespace stowage {

namespace {

using InPlace = UnaryFunction::InPlace;
using Saves = UnaryFunction::Saves;

const UnaryFunction* find(std::string_view name) {
  for (const UnaryFunction& function : unary_functions()) {
    if (function.name == name) return &function;
  }
  return nullptr;
}

const UnaryFunction& function_of(const OperatorLowering& lowering) {
  return *find(lowering.op().row->name);
}

Attributes function_attributes(const UnaryFunction& function) {
  Attributes attributes;
  attributes.set("function",
                 std::string(function.function.empty() ? function.name : function.function));
  return attributes;
}

// Whether backward gets the saved result instead of the input.
bool keeps_result_stowage(const UnaryFunction& function, bool) {
  return function.saves == Saves::result || function.gradient_from_result;
}

bool keeps_result_pytorch(const UnaryFunction& function, bool in_place) {
  return function.saves == Saves::result || (in_place && function.in_place == InPlace::result);
}

// Whether the result overwrites the input. A function whose backward does not need the input may do
// so. For the others PyTorch saves a copy, and our executor works out of place.
bool overwrites_stowage(const OperatorLowering& lowering, const UnaryFunction& function) {
  if (function.in_place == InPlace::none || !safely_in_place(lowering)) return false;
  return keeps_result_stowage(function, true) || !lowering.needs_gradient();
}

bool overwrites_pytorch(const OperatorLowering& lowering, const UnaryFunction& function) {
  return function.in_place != InPlace::none && asked_in_place(lowering);
}

using OverwriteRule = bool (*)(const OperatorLowering& lowering, const UnaryFunction& function);
using ResultRule = bool (*)(const UnaryFunction& function, bool in_place);

template <OverwriteRule overwrites, ResultRule keeps>
void forward_unary_function(OperatorLowering& lowering) {
  const UnaryFunction& function = function_of(lowering);
  const TensorView x = lowering.input();
  const bool in_place = overwrites(lowering, function);
  const bool keeps_result = keeps(function, in_place);
  std::optional<TensorView> copy;
  if (in_place && !keeps_result && function.in_place == InPlace::copy_of_input &&
      lowering.needs_gradient()) {
    copy = ordered_like(
        lowering.new_tensor("input_copy", x.shape, x.type, StorageClass::activation), x);
    lowering.emit(Kernel::copy, "copy", {x}, {*copy});
  }
  if (in_place) lowering.set_output(0, x);
  const TensorView y = in_place ? x : new_output_like(lowering, x);
  lowering.emit(function.forward, "forward", {x}, {y},
                {.attributes = function_attributes(function),
                 .flops = element_count(x.shape) * Affine(function.flops)});
  if (function.saves == Saves::nothing) return;
  lowering.save(keeps_result ? "result" : "input", keeps_result ? y : copy.value_or(x));
}

/// Passes on zeros_like of the arrived gradient.
void give_zero_gradient(OperatorLowering& lowering) {
  const TensorView dx = new_input_gradient_like(lowering, lowering.output_gradient());
  Attributes zero;
  zero.set("value", 0.0);
  lowering.emit(Kernel::fill, "backward", {}, {dx}, {.attributes = std::move(zero)});
  lowering.give_input_gradient(0, dx);
}

/// The temporaries of the kernel set's backward.
using TemporariesOf = std::vector<StorageId> (*)(OperatorLowering& lowering,
                                                 const UnaryFunction& function,
                                                 const TensorView& dx);

std::vector<StorageId> one_kernel(OperatorLowering&, const UnaryFunction&, const TensorView&) {
  return {};
}

/// There is a mask only for each bound that is given (clamp_backward in FunctionsManual.cpp).
std::int64_t masks_of(const OperatorLowering& lowering, const UnaryFunction& function) {
  std::int64_t masks = function.backward_masks;
  if (function.name != "clamp") return masks;
  for (const std::string_view bound : {"minimum", "maximum"}) {
    if (std::isinf(lowering.attributes().real(bound))) --masks;
  }
  return masks;
}

std::vector<StorageId> several_kernels(OperatorLowering& lowering, const UnaryFunction& function,
                                       const TensorView& dx) {
  std::vector<StorageId> temporaries;
  const auto temporary = [&](std::string_view name, std::int64_t count, Affine bytes) {
    for (std::int64_t i = 0; i < count; ++i) {
      temporaries.push_back(lowering.new_temporary(name, bytes));
    }
  };
  temporary("factor", function.backward_tensors, byte_count(dx));
  temporary("mask", masks_of(lowering, function), element_count(dx.shape));
  temporary("scalar", function.backward_scalars, element_size(dx.type));
  return temporaries;
}

template <TemporariesOf temporaries>
void backward_unary_function(OperatorLowering& lowering) {
  const UnaryFunction& function = function_of(lowering);
  if (function.saves == Saves::nothing) return give_zero_gradient(lowering);
  const TensorView dy = lowering.output_gradient();
  const TensorView kept = lowering.saved(lowering.has_saved("result") ? "result" : "input");
  const TensorView dx =
      new_input_gradient_like(lowering, function.gradient_has_saved_order ? kept : dy);
  lowering.emit(function.backward, "backward", {kept, dy}, {dx},
                {.attributes = function_attributes(function),
                 .temporaries = temporaries(lowering, function, dx),
                 .flops = element_count(dx.shape) * Affine(function.flops)});
  lowering.give_input_gradient(0, dx);
}

template <std::size_t index>
tl::expected<Inference, InferenceError> infer_unary_function(const Attributes&,
                                                             std::span<const TensorType> inputs) {
  return infer_elementwise(inputs, unary_functions()[index].flops);
}

tl::expected<Inference, InferenceError> infer_clamp(const Attributes& attributes,
                                                    std::span<const TensorType> inputs) {
  const double minimum = attributes.real("minimum"), maximum = attributes.real("maximum");
  if (std::isinf(minimum) && std::isinf(maximum)) {
    return refuse("has neither a minimum nor a maximum", "minimum");
  }
  if (minimum > maximum) {
    return refuse(fmt::format("minimum {} is above maximum {}", minimum, maximum), "minimum");
  }
  return infer_elementwise(inputs, 2);
}

constexpr std::size_t most_functions = 40;

// A shape rule does not get the operator's name, so each function has its own rule.
template <std::size_t... index>
constexpr std::array<InferRule, most_functions> infer_rules(std::index_sequence<index...>) {
  return {infer_unary_function<index>...};
}

}  // namespace

OperatorRow rows::unary(std::string_view name) {
  constexpr auto rules = infer_rules(std::make_index_sequence<most_functions>());
  const UnaryFunction* function = find(name);
  assert(function != nullptr && unary_functions().size() <= most_functions);
  const auto number = static_cast<std::size_t>(function - unary_functions().data());
  std::vector<AttributeSpec> attributes = function->attributes;
  if (function->in_place != InPlace::none) attributes.push_back(in_place_attribute());
  return {.name = function->name,
          .doc = function->doc,
          .attributes = std::move(attributes),
          .infer = name == "clamp" || name == "hardtanh" ? infer_clamp : rules[number],
          .lowering = {.stowage = {forward_unary_function<overwrites_stowage, keeps_result_stowage>,
                                   backward_unary_function<one_kernel>},
                       .pytorch = {forward_unary_function<overwrites_pytorch, keeps_result_pytorch>,
                                   backward_unary_function<several_kernels>}},
          .autocast = function->autocast};
}

}  // namespace stowage
