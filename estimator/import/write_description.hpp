// From a LayerList to a description's text (docs/model-description.md).
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

/// All of a description but its inputs and layers, which are the list's.
struct DescriptionFrame {
  std::string model;
  std::string source;
  std::vector<std::pair<std::string, std::int64_t>> symbols = {};
  LayerOutput output;
  std::vector<ImportedLoss> losses = {};
  std::vector<NamedText> train = {};  ///< entries of `train:`, as they are written
};

/// Which layers the output or a loss depends on, by number.
[[nodiscard]] std::vector<bool> needed_layers(const LayerList& layers,
                                              const DescriptionFrame& frame);
/// Layers that nothing needs are left out; so are inputs.
[[nodiscard]] std::string write_description(const LayerList& layers, const DescriptionFrame& frame);

}  // namespace stowage
