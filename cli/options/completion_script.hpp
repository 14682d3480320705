// Completion for shells and the manual page, made from the command and option tables.
#pragma once

#include <string>

namespace stowage {

/// A script that the shell reads: commands, their options, words that options take, names of cards
/// and models (which it asks `stowage completion gpus` and `models` for), files.
[[nodiscard]] std::string bash_completion();
[[nodiscard]] std::string zsh_completion();
[[nodiscard]] std::string fish_completion();

/// stowage(1), in roff's macros for manual pages.
[[nodiscard]] std::string manual_page();

}  // namespace stowage
