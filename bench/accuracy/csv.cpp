#include "bench/accuracy/csv.hpp"

#include <fmt/format.h>

#include <boost/tokenizer.hpp>
#include <charconv>
#include <fstream>
#include <stdexcept>

namespace stowage::accuracy {

namespace {

std::vector<std::string> fields_of(std::string line) {
  if (!line.empty() && line.back() == '\r') line.pop_back();
  const boost::tokenizer<boost::escaped_list_separator<char>> fields(line);
  return {fields.begin(), fields.end()};
}

}  // namespace

std::vector<CsvRow> read_csv(const std::filesystem::path& path) {
  std::ifstream input(path);
  std::string line;
  if (!std::getline(input, line)) {
    throw std::runtime_error(fmt::format("{}: cannot be read", path.string()));
  }
  const std::vector<std::string> header = fields_of(line);
  std::vector<CsvRow> rows;
  for (int number = 2; std::getline(input, line); ++number) {
    if (line.empty()) continue;
    const std::vector<std::string> fields = fields_of(line);
    if (fields.size() != header.size()) {
      throw std::runtime_error(fmt::format("{}:{}: {} fields, the header has {}", path.string(),
                                           number, fields.size(), header.size()));
    }
    CsvRow row;
    for (std::size_t i = 0; i < header.size(); ++i) row[header[i]] = fields[i];
    rows.push_back(std::move(row));
  }
  return rows;
}

double number(const CsvRow& row, const std::string& column) {
  const auto found = row.find(column);
  if (found == row.end()) throw std::runtime_error(fmt::format("no column '{}'", column));
  const std::string& text = found->second;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw std::runtime_error(fmt::format("column '{}': '{}' is not a number", column, text));
  }
  return value;
}

}  // namespace stowage::accuracy
