// Functions that write parts of a step file's text: numbers, quoted names, lists.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "estimator/base/affine.hpp"

namespace stowage::step_text {

using Text = fmt::memory_buffer;

template <typename... Args>
void put(Text& text, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
}

/// Writes a list; `item` writes the item with the given index.
void put_list(Text& text, std::size_t count, const std::function<void(std::size_t)>& item);

[[nodiscard]] std::string json_text(std::string_view text);
[[nodiscard]] std::string written(const Affine& size);
/// Always with a point or an exponent, so that it is not read back as an integer.
[[nodiscard]] std::string written(double value);
[[nodiscard]] std::string list_of(const std::vector<std::int64_t>& numbers);

}  // namespace stowage::step_text
