// The version: what `stowage` prints, and what the files that it writes say of their origin.
// A source of its own, so that a new tag recompiles nothing else (cmake/version.cmake).
#pragma once

#include <string_view>

namespace stowage {

extern const std::string_view program_version;

}  // namespace stowage
