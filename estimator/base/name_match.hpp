// Names as people type them ("ResNet_50" and "resnet50" are one), and as messages list them.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stowage {

/// Letters and digits alone, in lower case: what two spellings of a name have in common.
[[nodiscard]] std::string folded_name(std::string_view name);

/// "Batch Size" is "batch size": ASCII's letters alone.
[[nodiscard]] std::string lower_case(std::string_view text);

/// Is every word of `filter` a part of the name, both folded? An empty filter is in every name.
[[nodiscard]] bool has_words(std::string_view name, std::string_view filter);

/// "'a'", "'a' or 'b'", "'a', 'b' or 'c'".
[[nodiscard]] std::string alternatives(std::span<const std::string_view> words);

/// "a", "a and b", "a, b and c"; of more than `most` words "a, b, c and 2 others".
[[nodiscard]] std::string listed(const std::vector<std::string>& words,
                                 std::size_t most = std::numeric_limits<std::size_t>::max());

}  // namespace stowage
