// run_program: the whole of the program but for main's own catch.
#pragma once

#include <span>
#include <string>

#include "cli/output/exit_code.hpp"

namespace stowage {

/// `words` without the program's name. Writes to stdout and stderr.
[[nodiscard]] ExitCode run_program(std::span<const std::string> words);

}  // namespace stowage
