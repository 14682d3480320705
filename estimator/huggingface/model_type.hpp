// `model_type` of a config.json: whether it is one of those that are read, and what else there is.
#pragma once

#include <string>
#include <string_view>

#include "estimator/text/mistakes.hpp"
#include "estimator/text/yaml_document.hpp"

namespace stowage {

/// The type; empty: a mistake was reported. Of a type that is not read it says which are, and the
/// command that records the model with transformers itself; of one that joins several models (an
/// encoder of images and a language model) what they are. `argument`: as the user named the
/// configuration, "hf:ORG/NAME", a file or a folder.
[[nodiscard]] std::string read_model_type(const YamlNode& root, const std::string& argument,
                                          Mistakes& mistakes);

/// Whether a shell takes the text as one word as it is, so that it may stand in a command that is
/// shown.
[[nodiscard]] bool is_plain_word(std::string_view text);

}  // namespace stowage
