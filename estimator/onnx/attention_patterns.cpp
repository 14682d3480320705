#include <algorithm>

#include "estimator/onnx/pattern_match.hpp"
#include "estimator/onnx/patterns.hpp"

namespace stowage {

namespace {

// Through products with numbers, whose product is multiplied into `scale`.
LayerOutput unscaled(const LayerList& layers, LayerOutput output, double& scale) {
  while (const auto factor = factor_of(layers.at(output.layer))) {
    scale *= *factor;
    output = layers.at(output.layer).from[0];
  }
  return output;
}

struct Scores {
  LayerOutput query, key;
  bool key_is_turned = false;  ///< [.., features, positions]
  std::optional<LayerOutput> mask;
  double scale = 1;
};

std::optional<Scores> product_of(const LayerList& layers, LayerOutput output) {
  Scores scores;
  output = unscaled(layers, output, scores.scale);
  const ImportedLayer& product = layers.at(output.layer);
  if (!product.is("matmul") || given_flag(product, "transpose_a", false)) return std::nullopt;
  scores.query = unscaled(layers, product.from[0], scores.scale);
  scores.key = unscaled(layers, product.from[1], scores.scale);
  scores.key_is_turned = !given_flag(product, "transpose_b", false);
  return scores;
}

std::optional<Scores> scores_of(const LayerList& layers, const LayerOutput& output) {
  const ImportedLayer& layer = layers.at(output.layer);
  if (!layer.is("add")) return product_of(layers, output);
  for (std::size_t i = 0; i < 2; ++i) {
    auto scores = product_of(layers, layer.from[i]);
    if (!scores) continue;
    scores->mask = layer.from[1 - i];
    return scores;
  }
  return std::nullopt;
}

// Swaps the last two axes; the others stay.
bool swaps_last(const std::vector<std::int64_t>& axes) {
  const std::size_t rank = axes.size();
  if (rank < 2) return false;
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    if (axes[i] != static_cast<std::int64_t>(i)) return false;
  }
  return axes[rank - 2] == static_cast<std::int64_t>(rank - 1) &&
         axes[rank - 1] == static_cast<std::int64_t>(rank - 2);
}

// The keys as [.., positions, features]. Exporters fold the two transpositions of a key into one,
// which is changed back, unless others read it.
std::optional<LayerOutput> straight_key(LayerList& layers, const std::vector<int>& readers,
                                        const LayerOutput& key) {
  const ImportedLayer& turned = layers.at(key.layer);
  if (!turned.is("transpose")) return std::nullopt;
  std::vector<std::int64_t> axes = given_integers(turned, "axes");
  if (swaps_last(axes)) return turned.from[0];
  const std::size_t rank = axes.size();
  if (rank < 2 || readers[static_cast<std::size_t>(key.layer)] != 1) return std::nullopt;
  std::swap(axes[rank - 2], axes[rank - 1]);
  if (!layers.change(key.layer, "transpose", turned.from, {{"axes", axes}})) return std::nullopt;
  return key;
}

}  // namespace

bool find_attention(LayerList& layers, const std::vector<int>& readers,
                    const std::set<int>& triangles, int layer) {
  const ImportedLayer& product = layers.at(layer);
  const bool is_plain = product.is("matmul") && !given_flag(product, "transpose_a", false) &&
                        !given_flag(product, "transpose_b", false);
  if (!is_plain) return false;
  LayerOutput weights = product.from[0];
  const LayerOutput value = product.from[1];
  double dropout = 0;
  if (layers.at(weights.layer).is("dropout")) {
    dropout = given_real(layers.at(weights.layer), "p", 0.5);
    weights = layers.at(weights.layer).from[0];
  }
  const ImportedLayer& softmax = layers.at(weights.layer);
  if (!softmax.is("softmax")) return false;
  const auto rank = static_cast<double>(softmax.outputs[0].shape.size());
  const double axis = given_real(softmax, "axis", -1);
  if (axis != -1 && axis != rank - 1) return false;
  auto scores = scores_of(layers, softmax.from[0]);
  if (!scores) return false;
  // Shapes are compared before a key is turned, so that nothing is changed in vain.
  const Shape& query = layers.type(scores->query).shape;
  constexpr std::size_t usual_rank = 4;
  if (query.size() != usual_rank || layers.type(value).shape.size() != usual_rank) return false;
  if (scores->key_is_turned) {
    const auto key = straight_key(layers, readers, scores->key);
    if (!key) return false;
    scores->key = *key;
  }
  Attributes::Entries given;
  const double features = static_cast<double>(query.back().constant);
  if (!nearly(scores->scale * std::sqrt(features), 1)) given.emplace_back("scale", scores->scale);
  if (dropout > 0) given.emplace_back("dropout", dropout);
  std::vector<LayerOutput> from{scores->query, scores->key, value};
  if (scores->mask && triangles.contains(scores->mask->layer)) {
    given.emplace_back("causal", true);
  } else if (scores->mask) {
    from.push_back(*scores->mask);
  }
  return layers.change(layer, "scaled_dot_product_attention", std::move(from), std::move(given));
}

}  // namespace stowage
