// Activations and other functions of one number.
#include "gpu_probe/kernels/bodies/unary.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "gpu_probe/kernels/rows/formats.hpp"
#include "gpu_probe/kernels/rows/unary_function.hpp"

namespace stowage::kernels {
namespace {

using body::Function;
using body::Unary;

constexpr std::array<std::pair<std::string_view, Function>, 31> functions{
    {{"relu6", Function::relu6},
     {"leaky_relu", Function::leaky_relu},
     {"elu", Function::elu},
     {"silu", Function::silu},
     {"mish", Function::mish},
     {"hardswish", Function::hardswish},
     {"hardsigmoid", Function::hardsigmoid},
     {"sigmoid", Function::sigmoid},
     {"tanh", Function::tanh},
     {"softplus", Function::softplus},
     {"exp", Function::exp},
     {"log", Function::log},
     {"sqrt", Function::sqrt},
     {"power", Function::power},
     {"clamp", Function::clamp},
     {"rsqrt", Function::rsqrt},
     {"reciprocal", Function::reciprocal},
     {"abs", Function::abs},
     {"sin", Function::sin},
     {"cos", Function::cos},
     {"erf", Function::erf},
     {"log1p", Function::log1p},
     {"expm1", Function::expm1},
     {"selu", Function::selu},
     {"celu", Function::celu},
     {"log_sigmoid", Function::log_sigmoid},
     {"sign", Function::sign},
     {"floor", Function::floor},
     {"ceil", Function::ceil},
     {"round", Function::round},
     {"trunc", Function::trunc}}};

Unary gelu_of(const KernelCall& call) {
  const std::string form = text(call, "approximate", "none");
  if (form == "none") return {Function::gelu_erf, 0, 0};
  require(form == "tanh" || form == "tanh_composite", "attribute 'approximate' is '{}'", form);
  return {Function::gelu_tanh, 0, 0};
}

constexpr Unary relu{Function::relu, 0, 0};

Launches forward(const KernelCall& call, Arithmetic arithmetic, Unary f) {
  const auto &x = call.reads[0], &y = call.writes[0];
  require_same_shape("y", y, x);
  return {in_formats(x.type, arithmetic, [&]<class T, class Real>() {
    return each_index(body::UnaryForward<T, Real>{elements<T>(x), elements<T>(y), f},
                      count(x.shape));
  })};
}

Launches backward(const KernelCall& call, Arithmetic arithmetic, Unary f) {
  const auto &s = call.reads[0], &dy = call.reads[1], &dx = call.writes[0];
  require_same_shape("dy", dy, s);
  require_same_shape("dx", dx, s);
  return {in_formats(s.type, arithmetic, [&]<class T, class Real>() {
    return each_index(
        body::UnaryBackward<T, Real>{elements<T>(s), elements<T>(dy), elements<T>(dx), f},
        count(s.shape));
  })};
}

}  // namespace

Unary unary_function(const KernelCall& call) {
  const std::string name = text(call, "function", "");
  if (name == "relu") return relu;
  const auto found = std::ranges::find(functions, name, [](const auto& row) { return row.first; });
  require(found != functions.end(), "attribute 'function' is '{}'", name);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Unary f{found->second, 0, 0};
  switch (f.function) {
    case Function::leaky_relu:
      f.first = real(call, "negative_slope");
      break;
    case Function::elu:
    case Function::celu:
      f.first = real(call, "alpha");
      break;
    case Function::softplus:
      f.first = real(call, "beta");
      f.second = real(call, "threshold");
      break;
    case Function::power:
      f.first = real(call, "exponent");
      break;
    case Function::clamp:
      f.first = real(call, "minimum", -infinity);
      f.second = real(call, "maximum", infinity);
      break;
    default:
      break;
  }
  return f;
}

Launches unary_forward(const KernelCall& call, Arithmetic arithmetic) {
  return forward(call, arithmetic, unary_function(call));
}
Launches unary_backward(const KernelCall& call, Arithmetic arithmetic) {
  return backward(call, arithmetic, unary_function(call));
}
Launches relu_forward(const KernelCall& call, Arithmetic arithmetic) {
  return forward(call, arithmetic, relu);
}
Launches relu_backward(const KernelCall& call, Arithmetic arithmetic) {
  const auto &y = call.reads[0], &dy = call.reads[1], &dx = call.writes[0];
  require_same_shape("dy", dy, y);
  require_same_shape("dx", dx, y);
  return {in_formats(y.type, arithmetic, [&]<class T, class>() {
    return each_index(body::ReluBackward<T>{elements<T>(y), elements<T>(dy), elements<T>(dx)},
                      count(y.shape));
  })};
}
Launches gelu_forward(const KernelCall& call, Arithmetic arithmetic) {
  return forward(call, arithmetic, gelu_of(call));
}
Launches gelu_backward(const KernelCall& call, Arithmetic arithmetic) {
  return backward(call, arithmetic, gelu_of(call));
}

}  // namespace stowage::kernels
