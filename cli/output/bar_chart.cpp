#include "cli/output/bar_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "estimator/base/printable.hpp"

namespace stowage {

namespace {

constexpr int chart_height = 6;
constexpr std::size_t least_chart = 10, widest_chart = 72;  // characters of the bars themselves

constexpr std::array<std::string_view, 9> upward{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array<std::string_view, 9> rightward{" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};

/// How many eighths of `cells` cells the value fills; at least one where it is not 0.
int eighths(Bytes value, Bytes most, std::size_t cells) {
  if (value <= Bytes() || most <= Bytes()) return 0;
  const double share = static_cast<double>(value.count()) / static_cast<double>(most.count());
  return std::max(1, static_cast<int>(std::lround(share * static_cast<double>(cells) * 8)));
}

std::string_view cell_of(int filled, const std::array<std::string_view, 9>& blocks, bool unicode) {
  const int clamped = std::clamp(filled, 0, 8);
  if (unicode) return blocks[static_cast<std::size_t>(clamped)];
  return clamped >= 4 ? "#" : " ";
}

/// A column a character: the most of the values that it stands for, or a value several times.
std::vector<Bytes> columns_of(const std::vector<Bytes>& values, std::size_t width) {
  const std::size_t count =
      values.size() >= width ? width : values.size() * (width / values.size());
  std::vector<Bytes> columns;
  columns.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t begin = i * values.size() / count;
    const std::size_t end = std::max(begin + 1, (i + 1) * values.size() / count);
    columns.push_back(*std::max_element(values.begin() + static_cast<std::ptrdiff_t>(begin),
                                        values.begin() + static_cast<std::ptrdiff_t>(end)));
  }
  return columns;
}

/// The parts' names where they begin; one that would run into the next is left out.
std::string names_below(const ColumnChart& chart, std::size_t columns) {
  std::string line;
  for (std::size_t i = 0; i < chart.parts.size(); ++i) {
    const auto place = [&](std::size_t part) {
      return part < chart.parts.size()
                 ? chart.parts[part].begin * columns / std::max<std::size_t>(chart.values.size(), 1)
                 : columns;
    };
    const std::string& name = chart.parts[i].name;
    if (place(i) < line.size() || place(i) + name.size() > place(i + 1)) continue;
    line.resize(place(i), ' ');
    line += name + ' ';
  }
  return line;
}

std::string without_spaces_behind(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::string chart_text(const ColumnChart& chart, const ChartPen& pen) {
  if (chart.values.empty()) return {};
  const Bytes most = *std::ranges::max_element(chart.values);
  const std::string top = format_bytes(most);
  const std::size_t beside = top.size() + 2;
  if (pen.width < beside + least_chart) return {};
  const std::vector<Bytes> columns =
      columns_of(chart.values, std::min(pen.width - beside, widest_chart));
  std::string text = printable_text(chart.title) + '\n';
  for (int row = chart_height - 1; row >= 0; --row) {
    std::string line = fmt::format("{:>{}} ", row == chart_height - 1 ? top : "", top.size());
    line += pen.unicode ? "│" : "|";
    for (const Bytes value : columns) {
      line += cell_of(eighths(value, most, chart_height) - 8 * row, upward, pen.unicode);
    }
    text += without_spaces_behind(std::move(line)) + '\n';
  }
  const std::string names = names_below(chart, columns.size());
  if (names.empty()) return text;
  return text + without_spaces_behind(std::string(beside, ' ') + names) + '\n';
}

std::string chart_text(const RowChart& chart, const ChartPen& pen) {
  if (chart.bars.empty()) return {};
  Bytes most = chart.limit;
  std::size_t label = 0, value = 0;
  for (const RowChart::Bar& bar : chart.bars) {
    most = std::max(most, bar.value);
    label = std::max(label, bar.label.size());
    value = std::max(value, format_bytes(bar.value).size());
  }
  const std::size_t beside = label + value + 4;
  if (pen.width < beside + least_chart) return {};
  const std::size_t width = std::min(pen.width - beside, widest_chart);
  const auto limit =
      std::min(static_cast<std::size_t>(eighths(chart.limit, most, width) / 8), width - 1);
  std::string text = printable_text(chart.title) + '\n';
  for (const RowChart::Bar& bar : chart.bars) {
    const bool is_red = pen.colour && chart.limit > Bytes() && bar.value > chart.limit;
    std::string cells;
    for (std::size_t i = 0; i < width; ++i) {
      const int filled = eighths(bar.value, most, width) - 8 * static_cast<int>(i);
      const bool is_line = i == limit && chart.limit > Bytes();
      if (is_line && filled <= 0) {
        cells += pen.unicode ? "│" : "|";
      } else {
        cells += cell_of(filled, rightward, pen.unicode);
      }
    }
    text += without_spaces_behind(
                fmt::format("{:>{}}  {:>{}}  {}{}{}", bar.label, label, format_bytes(bar.value),
                            value, is_red ? "\x1b[31m" : "", cells, is_red ? "\x1b[0m" : "")) +
            '\n';
  }
  return text;
}

}  // namespace stowage
