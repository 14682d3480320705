#include "estimator/onnx/patterns.hpp"

#include "estimator/onnx/pattern_match.hpp"

namespace stowage {

namespace {

// x W + b, if no other layer reads the product.
bool find_linear(LayerList& layers, const std::vector<int>& readers, int layer) {
  const ImportedLayer& sum = layers.at(layer);
  if (!sum.is("add")) return false;
  for (std::size_t i = 0; i < 2; ++i) {
    const ImportedLayer product = layers.at(sum.from[i].layer);
    const ImportedLayer offset = layers.at(sum.from[1 - i].layer);
    if (!product.is("linear") || given_flag(product, "bias", true) || !offset.is("parameter") ||
        readers[static_cast<std::size_t>(sum.from[i].layer)] != 1) {
      continue;
    }
    const Shape& features = offset.outputs[0].shape;
    if (features.size() != 1 || features[0] != product.outputs[0].shape.back()) continue;
    if (!layers.change(layer, "linear", product.from,
                       {{"features", features[0].constant}, {"bias", true}})) {
      continue;
    }
    ImportedLayer& changed = layers.at(layer);
    changed.parameter_names = product.parameter_names;
    for (const auto& [old, name] : offset.parameter_names) {
      changed.parameter_names.emplace_back("bias", name);
    }
    changed.name = layers.fresh_name(product.name);
    return true;
  }
  return false;
}

}  // namespace

std::vector<int> count_readers(const LayerList& layers) {
  std::vector<int> readers(static_cast<std::size_t>(layers.count()));
  for (int i = 0; i < layers.count(); ++i) {
    for (const LayerOutput& input : layers.at(i).from)
      ++readers[static_cast<std::size_t>(input.layer)];
  }
  return readers;
}

FoundPatterns find_patterns(LayerList& layers, const std::set<int>& causal_masks, bool of_pytorch) {
  FoundPatterns found;
  const std::vector<int> readers = count_readers(layers);
  for (int i = 0; i < layers.count(); ++i) {
    if (find_linear(layers, readers, i)) {
      ++found.linears;
    } else if (find_norm(layers, i)) {
      ++found.norms;
    } else if (find_activation(layers, i)) {
      ++found.activations;
    } else if (find_attention(layers, readers, causal_masks, of_pytorch, i)) {
      ++found.attentions;
    }
  }
  return found;
}

}  // namespace stowage
