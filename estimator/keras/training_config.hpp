// What a compiled model's JSON says of its training: `compile_config` (Keras 3), `training_config`
// (Keras 2).
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

/// What is not expressed is left to the defaults, and said in a note.
[[nodiscard]] KerasTraining read_training_config(const KerasConfig& model);

}  // namespace stowage
