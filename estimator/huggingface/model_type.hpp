// Reads and checks `model_type` of a config.json.
#pragma once

#include <string>
#include <string_view>

#include "estimator/text/mistakes.hpp"
#include "estimator/text/yaml_document.hpp"

namespace stowage {

/// The type; empty: a mistake was reported. The message for an unsupported type lists the supported
/// ones, and the command that records the model with transformers itself; for a type composed of
/// several models (an image encoder and a language model) it lists those. `argument`: the
/// configuration as the user named it, "hf:ORG/NAME", a file or a folder.
[[nodiscard]] std::string read_model_type(const YamlNode& root, const std::string& argument,
                                          Mistakes& mistakes);

/// Whether a shell reads the text as one word without quotes, so that it can be used in a command
/// that is shown.
[[nodiscard]] bool is_plain_word(std::string_view text);

}  // namespace stowage
