// Tables as lines of text: which columns a screen has room for, how wide they are, and where texts
// fold.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "cli/output/printed_column.hpp"
#include "cli/output/table.hpp"
#include "estimator/base/printable.hpp"

namespace stowage {

namespace {

constexpr std::size_t readable = 20;    // columns of a folded text, as long as others can give way
constexpr std::size_t least_text = 8;   // and where they cannot
constexpr std::size_t long_name = 256;  // a text up to here is never shortened
constexpr std::size_t most_lines = 4;   // of a folded text

std::string padded(std::string_view text, std::size_t width, bool right_aligned) {
  const std::size_t have = column_count(text);
  const std::string spaces(width > have ? width - have : 0, ' ');
  return right_aligned ? spaces + std::string(text) : std::string(text) + spaces;
}

void end_line(std::string& out) {
  while (!out.empty() && out.back() == ' ') out.pop_back();
  out += '\n';
}

// The byte at which so many columns of the text end.
std::size_t end_of(std::string_view text, std::size_t columns) {
  std::size_t at = 0;
  for (; columns > 0 && at < text.size(); --columns) at += first_piece(text.substr(at)).bytes;
  return at;
}

/// The columns that are shown, and how wide they are.
struct Layout {
  std::vector<bool> is_shown;
  std::vector<std::size_t> widths;
  std::size_t line_width = 0;
  bool texts_below = false;  ///< each text has a line of its own, below its row's numbers
};

class Arrangement {
 public:
  explicit Arrangement(const Table& table) : table_(table) {
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      columns_.push_back(printed(table, c));
      std::size_t widest = 0;
      for (const std::string& text : columns_.back().texts) {
        widest = std::max(widest, column_count(text));
      }
      natural_.push_back(widest);
    }
  }

  /// The first of the ways to lay it out that the header names which fits, or else the last.
  [[nodiscard]] Layout layout(std::size_t room) const {
    std::vector<bool> all(columns_.size(), true);
    constexpr std::size_t whole = std::numeric_limits<std::size_t>::max();
    for (const auto& [least, folds_titles] :
         {std::pair(whole, false), std::pair(readable, false), std::pair(readable, true)}) {
      Layout tried = arranged(all, room, least, folds_titles);
      if (tried.line_width <= room) return tried;
    }
    std::vector<bool> shown = all;
    for (std::size_t c = columns_.size(); c-- > 0;) {
      if (!may_go(c)) continue;
      shown[c] = false;
      Layout tried = arranged(shown, room, readable, true);
      if (tried.line_width <= room) return tried;
    }
    if (text_columns() > 1) return with_texts_below(room);
    return arranged(shown, room, least_text, true);
  }

  [[nodiscard]] const std::vector<PrintedColumn>& columns() const { return columns_; }

 private:
  [[nodiscard]] std::ptrdiff_t text_columns() const {
    return std::ranges::count(columns_, false, &PrintedColumn::right_aligned);
  }

  /// The columns of numbers that have room, and no others.
  [[nodiscard]] Layout with_texts_below(std::size_t room) const {
    std::vector<bool> shown;
    for (const PrintedColumn& column : columns_) shown.push_back(column.right_aligned);
    Layout layout = arranged(shown, room, least_text, true);
    for (std::size_t c = columns_.size(); c-- > 0 && layout.line_width > room;) {
      if (!may_go(c)) continue;
      shown[c] = false;
      layout = arranged(shown, room, least_text, true);
    }
    layout.texts_below = true;
    return layout;
  }

  /// A column of numbers that is neither essential nor the first of its kind.
  [[nodiscard]] bool may_go(std::size_t c) const {
    const auto is_number = [](const PrintedColumn& column) { return column.right_aligned; };
    const auto first = std::ranges::find_if(columns_, is_number);
    return columns_[c].right_aligned && !table_.columns[c].essential &&
           !table_.columns[c].title.empty() &&
           first != columns_.begin() + static_cast<std::ptrdiff_t>(c);
  }

  [[nodiscard]] std::size_t title_width(std::size_t c, bool folds) const {
    const std::string& title = table_.columns[c].title;
    if (!folds) return column_count(title);
    std::size_t widest = 0;
    std::size_t begin = 0;
    while (begin < title.size()) {
      const std::size_t blank = std::min(title.find(' ', begin), title.size());
      widest = std::max(widest, column_count(title.substr(begin, blank - begin)));
      begin = blank + 1;
    }
    return widest;
  }

  /// Takes from the widest column of texts, down to `least`, until a line has room.
  [[nodiscard]] Layout arranged(std::vector<bool> shown, std::size_t room, std::size_t least,
                                bool folds_titles) const {
    Layout layout{.is_shown = std::move(shown), .widths = natural_};
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      layout.widths[c] = std::max(layout.widths[c], title_width(c, folds_titles));
      if (layout.is_shown[c]) layout.line_width += layout.widths[c] + 2;
    }
    while (layout.line_width > room) {
      std::optional<std::size_t> widest;
      for (std::size_t c = 0; c < columns_.size(); ++c) {
        const bool may_shrink = layout.is_shown[c] && !columns_[c].right_aligned &&
                                layout.widths[c] > std::max(least, title_width(c, true));
        if (may_shrink && (!widest || layout.widths[c] > layout.widths[*widest])) widest = c;
      }
      if (!widest) break;
      --layout.widths[*widest];
      --layout.line_width;
    }
    return layout;
  }

  const Table& table_;
  std::vector<PrintedColumn> columns_;
  std::vector<std::size_t> natural_;
};

/// A row of cells, each of some lines, as lines. `at_end`: shorter cells stand at the bottom.
std::string row_lines(const std::vector<std::vector<std::string>>& cells, const Layout& layout,
                      const std::vector<PrintedColumn>& columns, bool at_end) {
  std::size_t height = 0;
  for (const std::vector<std::string>& cell : cells) height = std::max(height, cell.size());
  std::string out;
  for (std::size_t i = 0; i < height; ++i) {
    out += "  ";
    for (std::size_t c = 0; c < cells.size(); ++c) {
      if (!layout.is_shown[c]) continue;
      const std::size_t above = at_end ? height - cells[c].size() : 0;
      const bool has = i >= above && i - above < cells[c].size();
      out += padded(has ? std::string_view(cells[c][i - above]) : std::string_view(),
                    layout.widths[c], columns[c].right_aligned);
      out += "  ";
    }
    end_line(out);
  }
  return out;
}

/// The texts of a row, each with its column's title, below its numbers; without numbers below the
/// first text.
std::string text_lines(const Table& table, const std::vector<PrintedColumn>& columns,
                       std::size_t row, std::size_t room) {
  const bool has_numbers = std::ranges::any_of(columns, &PrintedColumn::right_aligned);
  std::string out;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const std::string& text = columns[c].texts[row];
    if (columns[c].right_aligned || text.empty()) continue;
    const bool is_head = c == 0 && !has_numbers;
    const std::string_view margin = is_head ? "  " : "    ";
    const std::string& title = table.columns[c].title;
    const std::string whole = title.empty() || is_head ? text : fmt::format("{}: {}", title, text);
    const std::size_t width = std::max(room, margin.size() + least_text) - margin.size();
    for (const std::string& line : folded_text(whole, width)) {
      out += fmt::format("{}{}\n", margin, line);
    }
  }
  return out;
}

/// A line for the titles of columns that are left out; "": none is.
std::string left_out(const Table& table, const std::vector<PrintedColumn>& columns,
                     const Layout& layout) {
  std::string titles;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (layout.is_shown[c] || !columns[c].right_aligned) continue;
    titles += (titles.empty() ? "" : ", ") + table.columns[c].title;
  }
  return titles.empty() ? titles : fmt::format("  (no room for {})\n", titles);
}

}  // namespace

std::string shortened(std::string_view text, std::size_t columns) {
  constexpr std::string_view gap = "...";
  if (column_count(text) <= columns) return std::string(text);
  if (columns <= gap.size()) return std::string(gap.substr(0, columns));
  const std::size_t kept = columns - gap.size();
  const std::size_t tail = kept / 2;
  return fmt::format("{}{}{}", text.substr(0, end_of(text, kept - tail)), gap,
                     text.substr(end_of(text, column_count(text) - tail)));
}

std::vector<std::string> folded_text(std::string_view text, std::size_t columns) {
  const std::string shown = shortened(text, std::max(columns * most_lines, long_name));
  std::string_view rest = shown;
  std::vector<std::string> lines;
  while (column_count(rest) > columns) {
    const std::size_t end = std::max(end_of(rest, columns), first_piece(rest).bytes);
    // A blank may stand just behind the line.
    std::size_t cut = rest.substr(0, end + 1).rfind(' ');
    std::size_t next = cut == rest.npos ? cut : cut + 1;
    if (cut == rest.npos || cut == 0) {
      const std::size_t mark = rest.substr(0, end).find_last_of("/._-,");
      cut = mark == rest.npos || 4 * mark < end ? end : mark + 1;
      next = cut;
    }
    lines.emplace_back(rest.substr(0, cut));
    rest = rest.substr(next);
  }
  lines.emplace_back(rest);
  return lines;
}

std::string plain_text(const Table& table, std::optional<std::size_t> width) {
  const Arrangement arrangement(table);
  const std::vector<PrintedColumn>& columns = arrangement.columns();
  const Layout layout = arrangement.layout(width.value_or(std::numeric_limits<std::size_t>::max()));
  const auto lines = [&](const auto& text_of, bool at_end) {
    std::vector<std::vector<std::string>> cells;
    for (std::size_t c = 0; c < columns.size(); ++c) {
      cells.push_back(layout.is_shown[c] ? folded_text(text_of(c), layout.widths[c])
                                         : std::vector<std::string>());
    }
    return row_lines(cells, layout, columns, at_end);
  };
  std::string out;
  bool titled = false;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    titled = titled || (layout.is_shown[c] && !table.columns[c].title.empty());
  }
  if (titled) out += lines([&](std::size_t c) { return table.columns[c].title; }, true);
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    if (table.rows[r].is_total) {
      // The rule stands over the numbers that add up.
      out += lines(
          [&](std::size_t c) {
            const Cell& cell = table.rows[r].cells[c];
            const bool adds =
                std::holds_alternative<Bytes>(cell) || std::holds_alternative<std::int64_t>(cell);
            return adds ? std::string(layout.widths[c], '-') : std::string();
          },
          true);
    }
    out += lines([&](std::size_t c) { return columns[c].texts[r]; }, false);
    if (layout.texts_below) out += text_lines(table, columns, r, *width);
  }
  return out + left_out(table, columns, layout);
}

}  // namespace stowage
