#include <algorithm>
#include <numbers>

#include "estimator/onnx/pattern_match.hpp"
#include "estimator/onnx/patterns.hpp"

namespace stowage {

namespace {

using std::numbers::pi;
using std::numbers::sqrt2;

// A product as a number times factors, taken apart through scales and mul.
struct Product {
  double number = 1;
  std::vector<LayerOutput> factors;
};

void collect(const LayerList& layers, const LayerOutput& output, int depth, Product& product) {
  constexpr int deepest = 4;
  const ImportedLayer& layer = layers.at(output.layer);
  const auto factor = factor_of(layer);
  if (depth < deepest && factor) {
    product.number *= *factor;
    return collect(layers, layer.from[0], depth + 1, product);
  }
  if (depth < deepest && layer.is("mul") && layer.from[0] != layer.from[1]) {
    collect(layers, layer.from[0], depth + 1, product);
    return collect(layers, layer.from[1], depth + 1, product);
  }
  product.factors.push_back(output);
}

// number * x of some x.
std::optional<LayerOutput> scaled(const LayerList& layers, const LayerOutput& output,
                                  double number) {
  const ImportedLayer& layer = layers.at(output.layer);
  const auto factor = factor_of(layer);
  if (!factor || !nearly(*factor, number)) return std::nullopt;
  return layer.from[0];
}

// 1 + erf(x / sqrt 2): x.
std::optional<LayerOutput> inside_erf(const LayerList& layers, const LayerOutput& output) {
  const ImportedLayer& sum = layers.at(output.layer);
  const auto offset = offset_of(sum);
  if (!offset || !nearly(*offset, 1)) return std::nullopt;
  const ImportedLayer& erf = layers.at(sum.from[0].layer);
  if (!is_function(erf, "erf", "Erf") || erf.from.empty()) return std::nullopt;
  return scaled(layers, erf.from[0], 1 / sqrt2);
}

bool is_cube(const LayerList& layers, const LayerOutput& output, const LayerOutput& x) {
  const ImportedLayer& layer = layers.at(output.layer);
  if (layer.is("pow")) return layer.from[0] == x && nearly(given_real(layer, "exponent", 0), 3);
  if (!layer.is("mul")) return false;
  const auto is_square = [&](const LayerOutput& one) {
    const ImportedLayer& square = layers.at(one.layer);
    if (square.is("pow"))
      return square.from[0] == x && nearly(given_real(square, "exponent", 0), 2);
    return square.is("mul") && square.from[0] == x && square.from[1] == x;
  };
  return (layer.from[0] == x && is_square(layer.from[1])) ||
         (layer.from[1] == x && is_square(layer.from[0]));
}

// 1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)): x.
std::optional<LayerOutput> inside_tanh(const LayerList& layers, const LayerOutput& output) {
  constexpr double cubic = 0.044715;
  const ImportedLayer& sum = layers.at(output.layer);
  const auto offset = offset_of(sum);
  if (!offset || !nearly(*offset, 1)) return std::nullopt;
  const ImportedLayer& tanh = layers.at(sum.from[0].layer);
  if (!tanh.is("tanh")) return std::nullopt;
  const auto inner = scaled(layers, tanh.from[0], std::sqrt(2 / pi));
  if (!inner) return std::nullopt;
  const ImportedLayer& add = layers.at(inner->layer);
  if (!add.is("add")) return std::nullopt;
  for (std::size_t i = 0; i < 2; ++i) {
    const LayerOutput x = add.from[i];
    const auto cube = scaled(layers, add.from[1 - i], cubic);
    if (cube && is_cube(layers, *cube, x)) return x;
  }
  return std::nullopt;
}

// x / 2 (1 + f(x)), in any order.
bool find_gelu(LayerList& layers, int layer) {
  Product product;
  collect(layers, {layer, 0}, 0, product);
  if (!nearly(product.number, 0.5) || product.factors.size() != 2) return false;
  for (std::size_t i = 0; i < 2; ++i) {
    const LayerOutput x = product.factors[i];
    if (inside_erf(layers, product.factors[1 - i]) == x)
      return layers.change(layer, "gelu", {x}, {});
    if (inside_tanh(layers, product.factors[1 - i]) == x) {
      return layers.change(layer, "gelu", {x}, {{"approximate", std::string("tanh_composite")}});
    }
  }
  return false;
}

// clamp(x + 3, 0, 6): x.
std::optional<LayerOutput> inside_hard_clamp(const LayerList& layers, const LayerOutput& output) {
  constexpr double three = 3;
  constexpr double six = 6;
  const ImportedLayer& clamp = layers.at(output.layer);
  const bool is_clamp =
      clamp.is("relu6") || (clamp.is("clamp") && given_real(clamp, "minimum", -1) == 0 &&
                            given_real(clamp, "maximum", 0) == six);
  if (!is_clamp) return std::nullopt;
  const ImportedLayer& sum = layers.at(clamp.from[0].layer);
  const auto offset = offset_of(sum);
  if (!offset || !nearly(*offset, three)) return std::nullopt;
  return sum.from[0];
}

bool find_gated(LayerList& layers, int layer) {
  Product product;
  collect(layers, {layer, 0}, 0, product);
  if (product.factors.size() != 2) return false;
  for (std::size_t i = 0; i < 2; ++i) {
    const LayerOutput x = product.factors[i];
    const LayerOutput gate = product.factors[1 - i];
    const ImportedLayer& function = layers.at(gate.layer);
    const bool of_x = function.from.size() == 1 && function.from[0] == x;
    if (product.number == 1 && function.is("sigmoid") && of_x) {
      return layers.change(layer, "silu", {x}, {});
    }
    if (product.number == 1 && function.is("hardsigmoid") && of_x) {
      return layers.change(layer, "hardswish", {x}, {});
    }
    if (nearly(product.number, 1.0 / 6) && inside_hard_clamp(layers, gate) == x) {
      return layers.change(layer, "hardswish", {x}, {});
    }
    const bool is_softplus_tanh =
        function.is("tanh") && layers.at(function.from[0].layer).is("softplus");
    if (product.number == 1 && is_softplus_tanh && layers.at(function.from[0].layer).from[0] == x) {
      return layers.change(layer, "mish", {x}, {});
    }
  }
  return false;
}

}  // namespace

bool find_activation(LayerList& layers, int layer) {
  const ImportedLayer& last = layers.at(layer);
  if (!last.is("mul") && !factor_of(last)) return false;
  if (find_gelu(layers, layer) || find_gated(layers, layer)) return true;
  const auto factor = factor_of(layers.at(layer));
  if (!factor || !nearly(*factor, 1.0 / 6)) return false;
  const auto x = inside_hard_clamp(layers, layers.at(layer).from[0]);
  return x && layers.change(layer, "hardsigmoid", {*x}, {});
}

}  // namespace stowage
