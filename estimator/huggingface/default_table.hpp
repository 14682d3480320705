// What transformers' configuration classes take where a config.json lacks a key.
//
// Made by tests/reference/hf_defaults.py from the classes themselves; the keys of a row are also
// the list of those that such a config.json may have.
#pragma once

#include <span>
#include <string_view>

namespace stowage {

struct ConfigDefaults {
  std::string_view model_type;   ///< "llama"
  std::string_view class_name;   ///< "LlamaConfig"
  std::string_view defaults;     ///< a JSON mapping: key to value
  std::string_view other_names;  ///< a JSON mapping: general name ("hidden_size") to the type's own
};

/// A row for each model_type that is read, and for the parts of those that are made of parts.
[[nodiscard]] std::span<const ConfigDefaults> config_default_table();

}  // namespace stowage
