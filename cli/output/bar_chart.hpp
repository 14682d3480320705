// Bars of bytes in a terminal's characters: a column a moment, or a row a case.
//
// With Unicode a character is an eighth of a cell high or wide, else '#' for one that is at least
// half full. Charts are shown on a terminal alone (report.hpp): a pipe gets the tables.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "estimator/base/bytes.hpp"

namespace stowage {

/// Values that follow each other, drawn upwards, with names of parts below.
struct ColumnChart {
  struct Part {
    std::size_t begin = 0;  ///< the first of its values
    std::string name;
  };
  std::string title;
  std::vector<Bytes> values;
  std::vector<Part> parts;  ///< by `begin`
};

/// A bar a row, and a line that bars may cross.
struct RowChart {
  struct Bar {
    std::string label;
    Bytes value;
  };
  std::string title;
  std::vector<Bar> bars;
  Bytes limit;
};

struct ChartPen {
  bool unicode = false;
  bool colour = false;
  std::size_t width = 80;  ///< of a line, at most
};

/// Seven lines and the title, each with its end; "" without values.
[[nodiscard]] std::string chart_text(const ColumnChart& chart, const ChartPen& pen);
/// A line a bar and the title; what is beyond the limit is red where colours are wanted.
[[nodiscard]] std::string chart_text(const RowChart& chart, const ChartPen& pen);

}  // namespace stowage
