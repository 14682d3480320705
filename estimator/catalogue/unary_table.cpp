// The table of functions of one tensor (unary_function.hpp).
#include <cmath>
#include <limits>
#include <optional>

#include "estimator/catalogue/unary_function.hpp"

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

constexpr double infinity = std::numeric_limits<double>::infinity();

AttributeSpec lower_bound(double value) {
  AttributeSpec spec = function_real("minimum", "lower bound", value);
  if (std::isinf(value)) spec.minimum = -infinity;
  return spec;
}
AttributeSpec upper_bound(double value) {
  AttributeSpec spec = function_real("maximum", "upper bound", value);
  if (std::isinf(value)) spec.maximum = infinity;
  return spec;
}

std::vector<UnaryFunction> activations() {
  return {
      {.name = "relu",
       .doc = "max(x, 0)",
       .saves = Saves::result,
       .in_place = InPlace::result,
       .gradient_has_saved_order = true,
       .forward = Kernel::relu_forward,
       .backward = Kernel::relu_backward},
      {.name = "relu6",
       .doc = "min(max(x, 0), 6)",
       .in_place = InPlace::copy_of_input,
       .gradient_from_result = true,
       .flops = 2},
      {.name = "leaky_relu",
       .doc = "x, scaled where it is negative",
       .in_place = InPlace::result,
       .flops = 2,
       .attributes = {function_real("negative_slope", "factor of negative values", 0.01)},
       .gradient_has_saved_order = true},
      {.name = "elu",
       .doc = "x, or alpha (exp(x) - 1) where it is negative",
       .in_place = InPlace::result,
       .flops = 4,
       .attributes = {function_real("alpha", "limit of negative values", 1.0)}},
      {.name = "selu",
       .doc = "elu, scaled such that means and variances settle",
       .in_place = InPlace::result,
       .flops = 5},
      {.name = "celu",
       .doc = "x, or alpha (exp(x / alpha) - 1) where it is negative",
       .in_place = InPlace::result,
       .flops = 5,
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
      {.name = "hardtanh",
       .doc = "x within two bounds",
       .in_place = InPlace::copy_of_input,
       .gradient_from_result = true,
       .flops = 2,
       .attributes = {lower_bound(-1), upper_bound(1)},
       .function = "clamp"},
      {.name = "sigmoid",
       .doc = "1 / (1 + exp(-x))",
       .saves = Saves::result,
       .in_place = InPlace::result,
       .flops = 4},
      {.name = "log_sigmoid", .doc = "log(sigmoid(x))", .flops = 5},
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
      {.name = "log1p",
       .doc = "log(1 + x)",
       .flops = 3,
       .autocast = AutocastClass::float32,
       .backward_tensors = 1},
      {.name = "expm1",
       .doc = "exp(x) - 1",
       .saves = Saves::result,
       .flops = 3,
       .autocast = AutocastClass::float32,
       .backward_tensors = 1},
      {.name = "abs", .doc = "absolute value", .backward_tensors = 1},
      {.name = "sin", .doc = "sine", .flops = 3, .backward_tensors = 1},
      {.name = "cos", .doc = "cosine", .flops = 3, .backward_tensors = 2},
      {.name = "erf",
       .doc = "error function",
       .flops = 8,
       .backward_tensors = 4,
       .gradient_has_saved_order = true},
      {.name = "rsqrt",
       .doc = "1 / sqrt(x)",
       .saves = Saves::result,
       .flops = 2,
       .autocast = AutocastClass::float32,
       .backward_tensors = 2},
      {.name = "reciprocal",
       .doc = "1 / x",
       .saves = Saves::result,
       .autocast = AutocastClass::float32,
       .backward_tensors = 2},
      {.name = "sign", .doc = "-1, 0 or 1; its gradient is 0", .saves = Saves::nothing},
      {.name = "floor",
       .doc = "the largest integer that is not above x; its gradient is 0",
       .saves = Saves::nothing},
      {.name = "ceil",
       .doc = "the least integer that is not below x; its gradient is 0",
       .saves = Saves::nothing},
      {.name = "round",
       .doc = "the nearest integer, the even one of two; its gradient is 0",
       .saves = Saves::nothing},
      {.name = "trunc",
       .doc = "x without what stands behind the point; its gradient is 0",
       .saves = Saves::nothing},
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
       .attributes = {lower_bound(-infinity), upper_bound(infinity)},
       .backward_masks = 2,
       .backward_scalars = 1,
       .gradient_has_saved_order = true},
  };
}

}  // namespace

const std::vector<UnaryFunction>& unary_functions() {
  static const std::vector<UnaryFunction> functions = [] {
    std::vector<UnaryFunction> all = activations();
    for (const UnaryFunction& function : elementary()) all.push_back(function);
    return all;
  }();
  return functions;
}

}  // namespace stowage
