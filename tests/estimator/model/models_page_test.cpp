// docs/models.md has a row for every shipped model, with its implementation and its parameters.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <set>
#include <string>

#include "estimator/model/load_model.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

namespace {

/// 1234567 as "1,234,567".
std::string with_commas(std::int64_t count) {
  std::string text = std::to_string(count);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

/// The columns that the model itself says.
std::string row_of(const std::string& name, const std::string& directory) {
  const auto found = find_model(name, directory);
  REQUIRE(found.has_value());
  const auto model = load_model(found->source, found->options);
  if (!model) FAIL(render(model.error()));
  return fmt::format("| `{}` | {} | {} | ", name, model->source,
                     with_commas(parameter_count(*model)));
}

}  // namespace

TEST_CASE("docs/models.md lists what is shipped") {
  std::ifstream page(testing::source_path("/docs/models.md"));
  std::set<std::string> rows;
  for (std::string line; std::getline(page, line);) {
    // The last column, what is particular, is written by hand.
    if (line.starts_with("| `")) rows.insert(line.substr(0, line.rfind(" | ") + 3));
  }
  const std::string directory = testing::source_path("/configs/models");
  std::set<std::string> expected;
  for (const std::string& name : model_names(directory)) expected.insert(row_of(name, directory));
  for (const std::string& row : expected) {
    CAPTURE(row);
    CHECK(rows.contains(row));
  }
  for (const std::string& row : rows) {
    CAPTURE(row);
    CHECK(expected.contains(row));
  }
}

}  // namespace stowage
