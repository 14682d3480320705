// What the readers of a description's sections share: a section is a mapping with known keys.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "estimator/text/mistakes.hpp"
#include "estimator/text/yaml_document.hpp"

namespace stowage {

/// A section that is a mapping; null where it is absent, empty or something else (reported).
[[nodiscard]] const YamlNode* find_section(const YamlNode& root, std::string_view key,
                                           Mistakes& mistakes);

/// Reports the keys that are not among `known`; `of` is what has them: "a block".
void refuse_unknown_keys(const YamlNode& node, std::span<const std::string_view> known,
                         std::string_view of, Mistakes& mistakes);

/// Whether the key may name an argument or a symbol beside those of `taken`; else reports why not.
[[nodiscard]] bool is_free_name(const YamlNode& key, std::span<const std::string> taken,
                                Mistakes& mistakes);

}  // namespace stowage
