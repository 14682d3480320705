// The program's version: `stowage --version`, and a plan's `stowage_version`.
// A source of its own, so that a new tag recompiles nothing else (cmake/version.cmake).
#pragma once

#include <string_view>

namespace stowage {

extern const std::string_view program_version;

}  // namespace stowage
