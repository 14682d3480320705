#include "planner/plan/table_row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "estimator/base/quantity.hpp"

namespace stowage {
namespace {

constexpr std::size_t most_table_errors = 20;

}  // namespace

void TableMistakes::add(int line, int column, std::size_t length, std::string message) {
  if (found_.size() >= most_table_errors) return;
  const int shown = static_cast<int>(std::min<std::size_t>(std::max<std::size_t>(length, 1), 200));
  found_.push_back({.message = std::move(message), .span = {source_, line, column, shown}});
}

void TableMistakes::add(const TableLine& row, std::string message) {
  add(row.line, table_indentation + 1, row.text.size(), std::move(message));
}

std::string_view TableCells::word() {
  const std::size_t end = std::min(row_.text.find(' ', at_), row_.text.size());
  begin_ = at_;
  at_ = std::min(end + 1, row_.text.size());
  return row_.text.substr(begin_, end - begin_);
}

std::int64_t TableCells::number(std::string_view what, std::int64_t least, std::int64_t most) {
  const std::string_view text = word();
  const auto value = parse_number<std::int64_t>(text);
  if (!value) {
    refuse(text, fmt::format("{} must be an integer, not '{}'", what, text));
  } else if (*value < least || *value > most) {
    refuse(text, fmt::format("{} must be from {} to {}", what, least, most));
  }
  return std::clamp(value.value_or(least), least, std::max(least, most));
}

double TableCells::real(std::string_view what, double least) {
  const std::string_view text = word();
  const auto value = parse_number<double>(text);
  if (!value || !std::isfinite(*value)) {
    refuse(text, fmt::format("{} must be a number, not '{}'", what, text));
  } else if (*value < least) {
    refuse(text, fmt::format("{} must be at least {}", what, least));
  }
  return value && *value >= least && std::isfinite(*value) ? *value : least;
}

std::string_view TableCells::rest(std::string_view what) {
  begin_ = at_;
  const std::string_view text = row_.text.substr(at_);
  if (text.empty()) refuse(text, fmt::format("{} is missing", what));
  at_ = row_.text.size();
  return text;
}

void TableCells::end() {
  if (at_end()) return;
  begin_ = at_;
  const std::string_view text = row_.text.substr(at_);
  refuse(text, fmt::format("'{}' is more than the row has cells for", text));
}

void TableCells::refuse(std::string_view cell, std::string message) {
  if (!good_) return;
  good_ = false;
  mistakes_.add(row_.line, static_cast<int>(begin_) + table_indentation + 1, cell.size(),
                std::move(message));
}

}  // namespace stowage
