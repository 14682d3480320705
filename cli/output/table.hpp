// Table: rows under typed columns, from which every printed form is made.
//
// Printed: numbers right-aligned, one scale a column of sizes, and where a table has a total the
// rounded rows add up to it (largest remainders). CSV keeps bytes and seconds exact.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/base/grouped_digits.hpp"

namespace stowage {

/// A duration; printed with one scale a column, as sizes are.
struct Duration {
  double seconds = 0;
};
/// A part of a whole, printed in percent.
struct Share {
  double fraction = 0;
};

/// A plain number with as many decimals as it deserves.
struct Number {
  double value = 0;
  int decimals = 0;
};

using Cell =
    std::variant<std::monostate, std::string, std::int64_t, Bytes, Duration, Share, Number>;

struct Column {
  std::string title;       ///< as printed
  std::string key;         ///< as CSV's header: "device_bytes"
  bool essential = false;  ///< of numbers: never left out where a screen is narrow
};

struct Row {
  std::vector<Cell> cells;
  bool is_total = false;  ///< the last total and the rows after it sum to it
};

struct Table {
  bool one_size_scale = false;  ///< all columns of sizes in one unit, to be compared
  std::vector<Column> columns;
  std::vector<Row> rows;
};

/// Keeps the first `most` rows and makes one of the rest, "N others" in the last text column,
/// adding up sizes and counts. Unchanged where that would save nothing.
[[nodiscard]] Table folded(Table table, std::size_t most);

/// Lines ended by '\n', two spaces before each. No figure is ever cut. Where lines would be longer
/// than `width`, in this order: texts fold over several lines, of 20 columns and more; titles fold;
/// columns of numbers that are not essential are left out from the right, except the first of them,
/// and a line below the table lists those left out; a single column of texts folds into narrower
/// lines, several stand below their row's numbers, each on lines of its own. A text of more than
/// 256 columns that would take more than four lines is shortened in its middle.
[[nodiscard]] std::string plain_text(const Table& table,
                                     std::optional<std::size_t> width = std::nullopt);
[[nodiscard]] std::string markdown(const Table& table);
[[nodiscard]] std::string csv(const Table& table);

/// The text in lines of at most `columns`, broken at blanks, else behind one of "/._-,", else
/// anywhere; shortened in its middle where it is longer than 256 columns and than four lines. At
/// least one line.
[[nodiscard]] std::vector<std::string> folded_text(std::string_view text, std::size_t columns);
/// "a_very_lo...r_a_name", of at most `columns`; unchanged where it is no longer than that.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t columns);
/// "optimizer_state" as people read it: "optimizer state".
[[nodiscard]] std::string spaced(std::string_view name);
/// "1.24 s", "38.2 ms"
[[nodiscard]] std::string format_seconds(double seconds);

}  // namespace stowage
