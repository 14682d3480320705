#include <algorithm>

#include "estimator/onnx/pattern_match.hpp"
#include "estimator/onnx/patterns.hpp"

namespace stowage {

namespace {

// The tensor before products with numbers, which are multiplied into `scale`.
LayerOutput unscaled(const LayerList& layers, LayerOutput output, double& scale) {
  constexpr int most_products = 8;
  for (int i = 0; i < most_products; ++i) {
    const auto factor = factor_of(layers.at(output.layer));
    if (!factor) break;
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
  bool one_is_scaled = false;  ///< not both alike, as exporters write the fused attention
};

std::optional<Scores> product_of(const LayerList& layers, LayerOutput output) {
  Scores scores;
  output = unscaled(layers, output, scores.scale);
  const ImportedLayer& product = layers.at(output.layer);
  if (!product.is("matmul") || given_flag(product, "transpose_a", false)) return std::nullopt;
  double of_query = 1;
  double of_key = 1;
  scores.query = unscaled(layers, product.from[0], of_query);
  scores.key = unscaled(layers, product.from[1], of_key);
  scores.one_is_scaled = scores.scale != 1 || !nearly(of_query, of_key);
  scores.scale *= of_query * of_key;
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

// torch.export transposes a key as a stack of matrices: [b, h, s, d] to [b h, s, d], transposed,
// and back.
std::optional<LayerOutput> key_before_stack(const LayerList& layers, const LayerOutput& key) {
  const ImportedLayer& apart = layers.at(key.layer);
  if (!apart.is("reshape")) return std::nullopt;
  const ImportedLayer& turned = layers.at(apart.from[0].layer);
  if (!turned.is("transpose") || !swaps_last(given_integers(turned, "axes"))) return std::nullopt;
  const ImportedLayer& stacked = layers.at(turned.from[0].layer);
  if (!stacked.is("reshape")) return std::nullopt;
  const Shape& from = layers.type(stacked.from[0]).shape;
  constexpr std::size_t heads_rank = 4;
  if (from.size() != heads_rank ||
      layers.type(key).shape != Shape{from[0], from[1], from[3], from[2]}) {
    return std::nullopt;
  }
  return stacked.from[0];
}

// The keys as [.., positions, features]. Exporters fold the two transpositions of a key into one,
// which is changed back, unless others read it.
std::optional<LayerOutput> straight_key(LayerList& layers, const std::vector<int>& readers,
                                        const LayerOutput& key) {
  if (const auto whole = key_before_stack(layers, key)) return whole;
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

// Whether its last axis is not the innermost one in memory: reshapes may be views, and results of
// element-by-element kernels lie as their inputs do.
bool is_transposed_view(const LayerList& layers, const LayerOutput& output, int depth = 0) {
  constexpr int deepest = 6;
  const ImportedLayer& layer = layers.at(output.layer);
  if (layer.is("transpose")) return true;
  const bool passes = layer.is("reshape") || layer.is("add") || layer.is("where");
  return passes && depth < deepest && std::ranges::any_of(layer.from, [&](const LayerOutput& one) {
           return is_transposed_view(layers, one, depth + 1);
         });
}

// What repeats each head of keys or values, [b, h, s, d] to [b, h n, s, d]: a new axis, expanded,
// and taken together. The heads before it.
std::optional<LayerOutput> before_repeat(const LayerList& layers, const LayerOutput& heads) {
  const ImportedLayer& together = layers.at(heads.layer);
  if (!together.is("reshape")) return std::nullopt;
  const ImportedLayer& expanded = layers.at(together.from[0].layer);
  if (!expanded.is("expand")) return std::nullopt;
  const ImportedLayer& apart = layers.at(expanded.from[0].layer);
  if (!apart.is("reshape")) return std::nullopt;
  const Shape& from = layers.type(apart.from[0]).shape;
  const Shape& wide = expanded.outputs[0].shape;
  constexpr std::size_t heads_rank = 4;
  if (from.size() != heads_rank || wide.size() != heads_rank + 1 ||
      apart.outputs[0].shape != Shape{from[0], from[1], 1, from[2], from[3]} ||
      wide != Shape{from[0], from[1], wide[2], from[2], from[3]} ||
      layers.type(heads).shape != Shape{from[0], from[1] * wide[2], from[2], from[3]}) {
    return std::nullopt;
  }
  return apart.from[0];
}

// Fewer heads of keys and values. transformers leaves the repeating to PyTorch's kernel where there
// is no mask but the causal one.
void group_queries(const LayerList& layers, std::vector<LayerOutput>& from,
                   Attributes::Entries& given) {
  const auto key = before_repeat(layers, from[1]);
  const auto value = before_repeat(layers, from[2]);
  if (!key || !value || layers.type(*key).shape[1] != layers.type(*value).shape[1]) return;
  from[1] = *key;
  from[2] = *value;
  if (from.size() > 3) given.emplace_back("grouped", std::string("repeat"));
}

}  // namespace

/// Goes from the last product backwards: dropout, softmax, the scores with their mask and scale.
/// Then it brings the keys into the row's order, makes the row's attributes and changes the layer.
bool find_attention(LayerList& layers, const std::vector<int>& readers,
                    const std::set<int>& causal_masks, bool of_pytorch, int layer) {
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
  if (!scores || (of_pytorch && scores->one_is_scaled)) return false;
  // Shapes are compared before a key is transposed, so that a failed match changes nothing.
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
  if (scores->mask && causal_masks.contains(scores->mask->layer)) {
    given.emplace_back("causal", true);
  } else if (scores->mask) {
    from.push_back(*scores->mask);
    // transformers copies a mask that is a transposed view, which no exporter writes.
    if (of_pytorch && is_transposed_view(layers, *scores->mask)) {
      given.emplace_back("copy_bias", true);
    }
  }
  group_queries(layers, from, given);
  return layers.change(layer, "scaled_dot_product_attention", std::move(from), std::move(given));
}

}  // namespace stowage
