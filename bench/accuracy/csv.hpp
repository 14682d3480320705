// Comma-separated values with a header line, fields in double quotes where they hold commas.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace stowage::accuracy {

/// A line by its columns' names.
using CsvRow = std::map<std::string, std::string>;

/// Throws std::runtime_error, naming file and line: cannot be read, a line with another number of
/// fields than the header.
[[nodiscard]] std::vector<CsvRow> read_csv(const std::filesystem::path& path);

/// A field as a number. Throws std::runtime_error where it is missing or no number.
[[nodiscard]] double number(const CsvRow& row, const std::string& column);

}  // namespace stowage::accuracy
