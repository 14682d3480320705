// Names as people type them ("ResNet_50" and "resnet50" are one), and as messages list them.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace stowage {

/// Letters and digits alone, in lower case: what two spellings of a name have in common.
[[nodiscard]] std::string folded_name(std::string_view name);

/// Is every word of `filter` a part of the name, both folded? An empty filter is in every name.
[[nodiscard]] bool has_words(std::string_view name, std::string_view filter);

/// "'a'", "'a' or 'b'", "'a', 'b' or 'c'".
[[nodiscard]] std::string alternatives(std::span<const std::string_view> words);

}  // namespace stowage
