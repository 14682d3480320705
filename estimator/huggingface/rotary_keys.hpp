// Reads the keys of rotary positions: transformers 5's `rope_parameters`, and the earlier ones.
//
// Scaled positions (linear, dynamic, yarn, longrope, llama3) change values in the tables but no
// tensor's size (docs/huggingface.md).
#pragma once

#include <optional>

#include "estimator/huggingface/config_reader.hpp"

namespace stowage {

struct RotaryKeys {
  double base = 10000;
  double part = 1;                   ///< share of a head's features that are rotated
  std::optional<double> local_base;  ///< base for layers with a window, if it differs
};
/// Mistakes: a kind of scaling that transformers does not have, values out of bounds.
[[nodiscard]] RotaryKeys read_rotary(ConfigReader& config);

}  // namespace stowage
