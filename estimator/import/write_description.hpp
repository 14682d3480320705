// Writes a LayerList as a description's text (docs/model-description.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "estimator/import/layer_list.hpp"

namespace stowage {

struct ImportedLoss {
  std::string row;
  std::vector<LayerOutput> from;
  Attributes::Entries given = {};
};

/// The parts of a description besides its inputs and layers.
struct DescriptionFrame {
  std::string model;
  std::string source;
  std::vector<std::pair<std::string, std::int64_t>> symbols = {};
  LayerOutput output;
  std::vector<ImportedLoss> losses = {};
  std::vector<NamedText> train = {};  ///< entries of `train:`
};

/// By layer number: the output or a loss depends on it.
[[nodiscard]] std::vector<bool> needed_layers(const LayerList& layers,
                                              const DescriptionFrame& frame);
/// Leaves out layers and inputs that neither the output nor a loss needs.
[[nodiscard]] std::string write_description(const LayerList& layers, const DescriptionFrame& frame);

}  // namespace stowage
