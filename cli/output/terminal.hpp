// What is known of where the program writes.
#pragma once

#include <cstddef>
#include <cstdio>
#include <optional>
#include <string_view>

namespace stowage {

/// One that understands escape sequences: not TERM=dumb.
[[nodiscard]] bool is_terminal(int descriptor);

/// Whether the environment's locale (LC_ALL, else LC_CTYPE, else LANG) says UTF-8.
[[nodiscard]] bool writes_unicode();

/// Columns that tables keep to: those of COLUMNS, which also holds for a pipe or a file, else those
/// that the terminal itself reports. nullopt: neither.
[[nodiscard]] std::optional<std::size_t> output_width(int descriptor);

/// Writes and flushes; false: it could not be written in full, and errno says why.
bool write_quietly(std::FILE* stream, std::string_view text);

}  // namespace stowage
