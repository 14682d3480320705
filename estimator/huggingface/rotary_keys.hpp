// The keys of rotary positions: transformers 5's `rope_parameters`, and those before it.
//
// Scaled positions (linear, dynamic, yarn, longrope, llama3) change the values of the tables and no
// tensor's size; they are named in docs/huggingface.md.
#pragma once

#include <optional>

#include "estimator/huggingface/config_reader.hpp"

namespace stowage {

struct RotaryKeys {
  double base = 10000;
  double part = 1;                   ///< of a head's features that is turned
  std::optional<double> local_base;  ///< of layers with a window, where they have one of their own
};
/// Mistakes: a kind of scaling that transformers does not have, values out of bounds.
[[nodiscard]] RotaryKeys read_rotary(ConfigReader& config);

}  // namespace stowage
