// Where the project's own files lie: the folder that the tests were built from.
#pragma once

#include <string>
#include <string_view>

namespace stowage::testing {

/// The project's root with `path` behind it: source_path("/configs/models"). Only one source knows
/// the root, so that all others compile to the same object in every clone.
[[nodiscard]] std::string source_path(std::string_view path = "");

}  // namespace stowage::testing
