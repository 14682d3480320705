// A word as it is typed into a shell.
#pragma once

#include <string>
#include <string_view>

namespace stowage {

/// The word as it is where a POSIX shell leaves it alone; else quoted: 'my net.yaml', $'a\nb'
/// (bash, zsh and ksh; only for words with bytes that no terminal can show).
[[nodiscard]] std::string shell_word(std::string_view word);

}  // namespace stowage
