// Reads a YAML document into a ModelDescription, section by section.
#pragma once

#include "estimator/model/load_model.hpp"
#include "estimator/model/model_description.hpp"
#include "estimator/text/mistakes.hpp"
#include "estimator/text/yaml_document.hpp"

namespace stowage {

/// Reports every mistake, and returns the parts that could be read.
[[nodiscard]] ModelDescription read_description(const YamlDocument& document,
                                                const ModelOptions& options, Mistakes& mistakes);

/// Reads the description's `train:`.
[[nodiscard]] TrainSettings read_train(const YamlNode& node, const ModelDescription& model,
                                       Mistakes& mistakes);

/// Reads the description's `pins:`, a mapping from patterns to devices.
[[nodiscard]] std::vector<DevicePin> read_pins(const YamlNode& node, Mistakes& mistakes);

}  // namespace stowage
