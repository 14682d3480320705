#include "estimator/catalogue/unary_function.hpp"

#include <fmt/format.h>

#include <array>
#include <cassert>
#include <optional>
#include <utility>

#include "estimator/catalogue/elementwise.hpp"
#include "estimator/catalogue/rows.hpp"
#include "estimator/catalogue/shape_rules.hpp"

namespace stowage {

namespace {

using Saves = UnaryFunction::Saves;
using InPlace = UnaryFunction::InPlace;

AttributeSpec function_real(std::string_view name, std::string_view doc,
                            std::optional<double> value) {
  return {.name = name,
          .type = AttributeType::real,
          .doc = doc,
          .default_value = value ? std::optional<AttributeValue>(*value) : std::nullopt};
}

std::vector<UnaryFunction> activations() {
  return {
      {.name = "relu",
       .doc = "max(x, 0)",
       .saves = Saves::result,
       .in_place = InPlace::result,
       .gradient_lies_as_saved = true,
       .forward = Kernel::relu_forward,
       .backward = Kernel::relu_backward},
      {.name = "relu6",
       .doc = "min(max(x, 0), 6)",
       .in_place = InPlace::copy_of_input,
       .result_tells = true,
       .flops = 2},
      {.name = "leaky_relu",
       .doc = "x, scaled where it is negative",
       .in_place = InPlace::result,
       .flops = 2,
       .attributes = {function_real("negative_slope", "factor of negative values", 0.01)},
       .gradient_lies_as_saved = true},
      {.name = "elu",
       .doc = "x, or alpha (exp(x) - 1) where it is negative",
       .in_place = InPlace::result,
       .flops = 4,
       .attributes = {function_real("alpha", "limit of negative values", 1.0)}},
      {.name = "silu",
       .doc = "x sigmoid(x), also called swish",
       .in_place = InPlace::copy_of_input,
       .flops = 5},
      {.name = "mish",
       .doc = "x tanh(softplus(x))",
       .in_place = InPlace::copy_of_input,
       .flops = 8},
      {.name = "hardswish",
       .doc = "x min(max(x + 3, 0), 6) / 6",
       .in_place = InPlace::copy_of_input,
       .flops = 5},
      {.name = "hardsigmoid",
       .doc = "min(max(x + 3, 0), 6) / 6",
       .in_place = InPlace::copy_of_input,
       .flops = 4},
      {.name = "sigmoid",
       .doc = "1 / (1 + exp(-x))",
       .saves = Saves::result,
       .in_place = InPlace::result,
       .flops = 4},
      {.name = "tanh",
       .doc = "hyperbolic tangent",
       .saves = Saves::result,
       .in_place = InPlace::result,
       .flops = 5},
      {.name = "softplus",
       .doc = "log(1 + exp(beta x)) / beta",
       .flops = 5,
       .autocast = AutocastClass::float32,
       .attributes = {function_real("beta", "steepness", 1.0),
                      function_real("threshold", "where beta x is larger, the result is x", 20.0)}},
  };
}

std::vector<UnaryFunction> elementary() {
  return {
      {.name = "exp",
       .doc = "e to the power of x",
       .saves = Saves::result,
       .flops = 3,
       .autocast = AutocastClass::float32},
      {.name = "log", .doc = "natural logarithm", .flops = 3, .autocast = AutocastClass::float32},
      {.name = "sqrt",
       .doc = "square root",
       .saves = Saves::result,
       .flops = 2,
       .backward_tensors = 1},
      {.name = "pow",
       .doc = "x to a power",
       .flops = 4,
       .autocast = AutocastClass::float32,
       .attributes = {function_real("exponent", "the power", std::nullopt)},
       .backward_tensors = 2,
       .function = "power"},
      {.name = "clamp",
       .doc = "x within two bounds",
       .flops = 2,
       .attributes = {function_real("minimum", "lower bound", std::nullopt),
                      function_real("maximum", "upper bound", std::nullopt)},
       .backward_masks = 2,
       .backward_scalars = 1,
       .gradient_lies_as_saved = true},
  };
}

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

// Whether backward is handed the result, where the forward kernel works in place or not.
bool keeps_result_stowage(const UnaryFunction& function, bool) {
  return function.saves == Saves::result || function.result_tells;
}

bool keeps_result_pytorch(const UnaryFunction& function, bool in_place) {
  return function.saves == Saves::result || (in_place && function.in_place == InPlace::result);
}

// Whether the result takes the input's storage. What autograd does not ask for the input may lose
// it; PyTorch gives what does a copy, our executor then works out of place.
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
  lowering.save(keeps_result ? "result" : "input", keeps_result ? y : copy.value_or(x));
}

/// What the kernel set's backward has on the way to `dx`.
using TemporariesOf = std::vector<StorageId> (*)(OperatorLowering& lowering,
                                                 const UnaryFunction& function,
                                                 const TensorView& dx);

std::vector<StorageId> one_kernel(OperatorLowering&, const UnaryFunction&, const TensorView&) {
  return {};
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
  temporary("mask", function.backward_masks, element_count(dx.shape));
  temporary("scalar", function.backward_scalars, element_size(dx.type));
  return temporaries;
}

template <TemporariesOf temporaries>
void backward_unary_function(OperatorLowering& lowering) {
  const UnaryFunction& function = function_of(lowering);
  const TensorView dy = lowering.output_gradient();
  const TensorView kept = lowering.saved(lowering.has_saved("result") ? "result" : "input");
  const TensorView dx =
      new_input_gradient_like(lowering, function.gradient_lies_as_saved ? kept : dy);
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
  if (attributes.real("minimum") > attributes.real("maximum")) {
    return refuse(fmt::format("minimum {} is above maximum {}", attributes.real("minimum"),
                              attributes.real("maximum")),
                  "minimum");
  }
  return infer_elementwise(inputs, 2);
}

constexpr std::size_t most_functions = 24;

// Shape rules see no name, so that each function has its own.
template <std::size_t... index>
constexpr std::array<InferRule, most_functions> infer_rules(std::index_sequence<index...>) {
  return {infer_unary_function<index>...};
}

}  // namespace

const std::vector<UnaryFunction>& unary_functions() {
  static const std::vector<UnaryFunction> functions = [] {
    std::vector<UnaryFunction> all = activations();
    for (const UnaryFunction& function : elementary()) all.push_back(function);
    assert(all.size() <= most_functions);
    return all;
  }();
  return functions;
}

OperatorRow rows::unary(std::string_view name) {
  constexpr auto rules = infer_rules(std::make_index_sequence<most_functions>());
  const UnaryFunction* function = find(name);
  assert(function != nullptr);
  const auto number = static_cast<std::size_t>(function - unary_functions().data());
  std::vector<AttributeSpec> attributes = function->attributes;
  if (function->in_place != InPlace::none) attributes.push_back(in_place_attribute());
  return {.name = function->name,
          .doc = function->doc,
          .attributes = std::move(attributes),
          .infer = name == "clamp" ? infer_clamp : rules[number],
          .lowering = {.stowage = {forward_unary_function<overwrites_stowage, keeps_result_stowage>,
                                   backward_unary_function<one_kernel>},
                       .pytorch = {forward_unary_function<overwrites_pytorch, keeps_result_pytorch>,
                                   backward_unary_function<several_kernels>}},
          .autocast = function->autocast};
}

}  // namespace stowage
