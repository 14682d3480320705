// PrintedColumn: a column of a table as texts, before they are laid out.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/output/table.hpp"

namespace stowage {

struct PrintedColumn {
  std::vector<std::string> texts;  ///< one a row, with the column's unit
  bool right_aligned = false;      ///< it has numbers
};

[[nodiscard]] PrintedColumn printed(const Table& table, std::size_t column);

}  // namespace stowage
