// Reads rows of a plan's tables cell by cell, and collects mistakes with their places.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "estimator/base/diagnostic.hpp"

namespace stowage {

inline constexpr int table_indentation = 2;

struct TableLine {
  int line = 0;
  std::string_view text;  ///< without its indentation
};

/// Collects the first twenty mistakes of the tables.
class TableMistakes {
 public:
  explicit TableMistakes(SourceTextPtr source) : source_(std::move(source)) {}

  void add(int line, int column, std::size_t length, std::string message);
  /// A mistake about a whole row.
  void add(const TableLine& row, std::string message);
  [[nodiscard]] bool none() const { return found_.empty(); }
  [[nodiscard]] Diagnostics taken() && { return std::move(found_); }

 private:
  SourceTextPtr source_;
  Diagnostics found_;
};

/// Reads the cells of one row, from left to right. After the first mistake it reads no further
/// cell.
class TableCells {
 public:
  TableCells(TableMistakes& mistakes, const TableLine& row) : mistakes_(mistakes), row_(row) {}

  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] bool at_end() const { return at_ >= row_.text.size(); }

  std::string_view word();
  /// An integer from `least` to `most`: after a mistake too, so that whoever reads on may divide by
  /// it or take it for an index.
  std::int64_t number(std::string_view what, std::int64_t least, std::int64_t most);
  /// A finite number, at least `least`, after a mistake too.
  double real(std::string_view what, double least);
  std::string_view rest(std::string_view what);
  /// Reports text behind the last cell.
  void end();
  /// Reports a mistake in the cell that was read last.
  void refuse(std::string_view cell, std::string message);

 private:
  TableMistakes& mistakes_;
  const TableLine& row_;
  std::size_t begin_ = 0, at_ = 0;
  bool good_ = true;
};

}  // namespace stowage
