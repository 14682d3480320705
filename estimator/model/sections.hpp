// Functions that the readers of a description's sections share. A section is a mapping with known
// keys.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "estimator/text/mistakes.hpp"
#include "estimator/text/yaml_document.hpp"

namespace stowage {

/// The section, a mapping. Null: it is absent, empty, or not a mapping, which is reported.
[[nodiscard]] const YamlNode* find_section(const YamlNode& root, std::string_view key,
                                           Mistakes& mistakes);

/// Reports keys that are not among `known`. `of`: what has the keys, "a block".
void refuse_unknown_keys(const YamlNode& node, std::span<const std::string_view> known,
                         std::string_view of, Mistakes& mistakes);

/// Whether the key is a valid name of an argument or symbol that is not in `taken`; else reports
/// why not.
[[nodiscard]] bool is_free_name(const YamlNode& key, std::span<const std::string> taken,
                                Mistakes& mistakes);

}  // namespace stowage
