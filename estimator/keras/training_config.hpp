// Reads the training settings of a compiled model's JSON: `compile_config` (Keras 3) or
// `training_config` (Keras 2).
#pragma once

#include <optional>
#include <string>

#include "estimator/import/write_description.hpp"
#include "estimator/keras/keras_config.hpp"

namespace stowage {

struct KerasTraining {
  std::optional<std::string> loss;  ///< a catalogue row
  std::vector<NamedText> train;     ///< entries of `train:`
  Diagnostics notes;
};

/// Settings that a description cannot express keep their defaults, and a note says so.
[[nodiscard]] KerasTraining read_training_config(const KerasConfig& model);

}  // namespace stowage
