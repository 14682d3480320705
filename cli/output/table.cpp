#include "cli/output/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "cli/output/printed_column.hpp"
#include "estimator/base/printable.hpp"

namespace stowage {

namespace {

struct Scale {
  std::string_view unit;
  double factor = 1;
  int decimals = 0;
};

template <typename Kind>
std::vector<const Kind*> cells_of(const Table& table, std::size_t column) {
  std::vector<const Kind*> cells;
  for (const Row& row : table.rows) {
    if (column >= row.cells.size()) continue;
    if (const auto* cell = std::get_if<Kind>(&row.cells[column])) cells.push_back(cell);
  }
  return cells;
}

double largest_size(const Table& table, std::size_t column) {
  double largest = 0;
  for (const Bytes* bytes : cells_of<Bytes>(table, column)) {
    largest = std::max(largest, std::abs(static_cast<double>(bytes->count())));
  }
  return largest;
}

Scale size_scale(const Table& table, std::size_t column) {
  double largest = largest_size(table, column);
  if (table.one_size_scale) {
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      largest = std::max(largest, largest_size(table, c));
    }
  }
  // A unit up only at ten thousand, so that the small rows of a column keep their digits.
  constexpr std::array<Scale, 4> scales{
      {{"B", 1, 0}, {"KiB", 0x1p10, 1}, {"MiB", 0x1p20, 1}, {"GiB", 0x1p30, 2}}};
  if (largest < 1024) return scales[0];
  for (const Scale& scale : scales) {
    if (scale.factor > 1 && largest < 10240 * scale.factor) return scale;
  }
  return scales.back();
}

Scale duration_scale(const Table& table, std::size_t column) {
  double largest = 0;
  for (const Duration* duration : cells_of<Duration>(table, column)) {
    largest = std::max(largest, std::abs(duration->seconds));
  }
  if (largest >= 1) return {"s", 1, 3};
  if (largest >= 1e-3) return {"ms", 1e-3, 2};
  return {"us", 1e-6, 1};
}

// In units of the last printed digit.
double in_digits(Bytes bytes, const Scale& scale) {
  return static_cast<double>(bytes.count()) / scale.factor * std::pow(10, scale.decimals);
}

std::string grouped(double digits, int decimals) {
  const auto whole = static_cast<std::int64_t>(digits);
  const auto unit = static_cast<std::int64_t>(std::llround(std::pow(10, decimals)));
  std::string text = grouped_digits(std::abs(whole) / unit);
  if (decimals > 0) text += fmt::format(".{:0{}}", std::abs(whole) % unit, decimals);
  return whole < 0 ? "-" + text : text;
}

// Rounds the rows of one block so that they sum to `missing`, which is whole: the largest
// remainders go up.
void round_block(std::vector<double>& digits, std::size_t begin, std::size_t end, double missing) {
  std::vector<std::size_t> order(end - begin);
  std::iota(order.begin(), order.end(), begin);
  std::vector<double> remainder(digits.size());
  for (const std::size_t i : order) {
    remainder[i] = digits[i] - std::floor(digits[i]);
    digits[i] = std::floor(digits[i]);
    missing -= digits[i];
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return remainder[a] > remainder[b]; });
  for (std::size_t k = 0; k < order.size() && missing >= 1; ++k, missing -= 1) {
    digits[order[k]] += 1;
  }
}

std::vector<std::string> size_column(const Table& table, std::size_t column) {
  const Scale scale = size_scale(table, column);
  std::vector<double> digits(table.rows.size());
  std::vector<bool> is_size(table.rows.size());
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    if (const auto* bytes = std::get_if<Bytes>(&table.rows[r].cells[column])) {
      digits[r] = in_digits(*bytes, scale);
      is_size[r] = true;
    }
  }
  std::size_t begin = 0;
  double carried = 0;
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    if (!table.rows[r].is_total) continue;
    const double total = std::round(digits[r]);
    round_block(digits, begin, r, total - carried);
    carried = total;
    begin = r + 1;
  }
  std::vector<std::string> texts(table.rows.size());
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    if (is_size[r]) {
      texts[r] = fmt::format("{} {}", grouped(std::round(digits[r]), scale.decimals), scale.unit);
    }
  }
  return texts;
}

std::string exact_text(const Cell& cell) {
  struct Write {
    std::string operator()(std::monostate) const { return ""; }
    std::string operator()(const std::string& text) const { return printable_line(text); }
    std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
    std::string operator()(Bytes bytes) const { return fmt::format("{}", bytes.count()); }
    std::string operator()(Duration duration) const { return fmt::format("{}", duration.seconds); }
    std::string operator()(Share share) const { return fmt::format("{}", share.fraction); }
    std::string operator()(Number number) const { return fmt::format("{}", number.value); }
  };
  return std::visit(Write{}, cell);
}

}  // namespace

PrintedColumn printed(const Table& table, std::size_t column) {
  PrintedColumn result;
  result.texts = size_column(table, column);
  const Scale durations = duration_scale(table, column);
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    const Cell& cell = table.rows[r].cells[column];
    std::string& text = result.texts[r];
    if (const auto* words = std::get_if<std::string>(&cell)) text = printable_line(*words);
    if (const auto* count = std::get_if<std::int64_t>(&cell)) text = grouped_digits(*count);
    if (const auto* number = std::get_if<Number>(&cell)) {
      text = fmt::format("{:.{}f}", number->value, number->decimals);
    }
    if (const auto* share = std::get_if<Share>(&cell)) {
      text = fmt::format("{:.1f} %", share->fraction * 100);
    }
    if (const auto* duration = std::get_if<Duration>(&cell)) {
      text = fmt::format("{:.{}f} {}", duration->seconds / durations.factor, durations.decimals,
                         durations.unit);
    }
    const bool is_number =
        !std::holds_alternative<std::string>(cell) && !std::holds_alternative<std::monostate>(cell);
    result.right_aligned = result.right_aligned || is_number;
  }
  return result;
}

namespace {

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

}  // namespace

std::string spaced(std::string_view name) {
  std::string text(name);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

std::string format_seconds(double seconds) {
  if (seconds >= 1) return fmt::format("{:.2f} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.1f} us", seconds * 1e6);
}

Table folded(Table table, std::size_t most) {
  if (table.rows.size() <= most + 1) return table;
  Row others = table.rows[most];
  std::size_t name_column = table.columns.size();
  for (std::size_t c = 0; c < others.cells.size(); ++c) {
    if (std::holds_alternative<std::string>(others.cells[c])) {
      others.cells[c] = std::monostate{};
      name_column = c;
    }
  }
  for (std::size_t r = most + 1; r < table.rows.size(); ++r) {
    for (std::size_t c = 0; c < others.cells.size(); ++c) {
      const Cell& cell = table.rows[r].cells[c];
      if (auto* sum = std::get_if<Bytes>(&others.cells[c])) *sum += std::get<Bytes>(cell);
      if (auto* sum = std::get_if<std::int64_t>(&others.cells[c])) {
        *sum = checked_add(*sum, std::get<std::int64_t>(cell));
      }
      if (auto* sum = std::get_if<Share>(&others.cells[c])) {
        sum->fraction += std::get<Share>(cell).fraction;
      }
    }
  }
  if (name_column < others.cells.size()) {
    others.cells[name_column] = fmt::format("{} others", table.rows.size() - most);
  }
  table.rows.resize(most);
  table.rows.push_back(std::move(others));
  return table;
}

std::string markdown(const Table& table) {
  std::string out = "|";
  std::vector<PrintedColumn> columns;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    columns.push_back(printed(table, c));
    out += fmt::format(" {} |", table.columns[c].title);
  }
  out += "\n|";
  for (const PrintedColumn& column : columns) out += column.right_aligned ? "---:|" : "---|";
  out += '\n';
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    out += '|';
    for (const PrintedColumn& column : columns) {
      std::string text;
      for (const char c : column.texts[r])
        text += c == '|' ? std::string("\\|") : std::string(1, c);
      out += fmt::format(" {} |", text);
    }
    out += '\n';
  }
  return out;
}

std::string csv(const Table& table) {
  std::string out;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (c > 0) out += ',';
    out += csv_field(table.columns[c].key);
  }
  out += '\n';
  for (const Row& row : table.rows) {
    for (std::size_t c = 0; c < row.cells.size(); ++c) {
      if (c > 0) out += ',';
      out += csv_field(exact_text(row.cells[c]));
    }
    out += '\n';
  }
  return out;
}

}  // namespace stowage
