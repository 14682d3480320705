#include "estimator/onnx/in_place.hpp"

#include <algorithm>
#include <array>

#include "estimator/onnx/patterns.hpp"

namespace stowage {

namespace {

constexpr std::array<std::string_view, 4> overwriting_rows{"relu", "relu6", "hardswish", "silu"};

bool is_convolution(const ImportedLayer& layer) {
  return layer.row != nullptr && layer.row->name.starts_with("conv");
}

bool is_activation(const ImportedLayer& layer) {
  return layer.row != nullptr &&
         std::ranges::find(overwriting_rows, layer.row->name) != overwriting_rows.end();
}

bool change_in_place(LayerList& layers, int layer) {
  const ImportedLayer before = layers.at(layer);
  Attributes::Entries given = before.given;
  given.emplace_back("in_place", true);
  return layers.change(layer, before.row->name, before.from, std::move(given));
}

}  // namespace

OverwritingLayers overwrite_inputs(LayerList& layers, const std::vector<LayerOutput>& outputs) {
  std::vector<int> readers = count_readers(layers);
  for (const LayerOutput& output : outputs) ++readers[static_cast<std::size_t>(output.layer)];
  const auto is_read_once = [&](const LayerOutput& output) {
    return readers[static_cast<std::size_t>(output.layer)] == 1;
  };
  bool convolves = false;
  for (int i = 0; i < layers.count(); ++i) convolves = convolves || is_convolution(layers.at(i));

  OverwritingLayers found;
  for (int i = 0; i < layers.count(); ++i) {
    if (!is_activation(layers.at(i))) continue;
    const LayerOutput input = layers.at(i).from[0];
    const ImportedLayer& read = layers.at(input.layer);
    const bool suits = is_convolution(read) || read.is("batch_norm") || read.is("add") ||
                       (convolves && read.is("linear"));
    if (!suits || !is_read_once(input) || !change_in_place(layers, i)) continue;
    ++found.activations;
    if (!read.is("add")) continue;
    const LayerOutput first = layers.at(input.layer).from[0];
    if (layers.at(first.layer).is("batch_norm") && is_read_once(first) &&
        change_in_place(layers, input.layer)) {
      ++found.sums;
    }
  }
  return found;
}

}  // namespace stowage
