// Words of the DOT language that both drawings are written with.
#pragma once

#include <string>
#include <string_view>

namespace stowage {

/// A double-quoted string of the DOT language.
[[nodiscard]] std::string dot_quoted(std::string_view text);

/// "digraph NAME {" and how nodes and edges look unless they say otherwise.
[[nodiscard]] std::string dot_opening(std::string_view name);

}  // namespace stowage
