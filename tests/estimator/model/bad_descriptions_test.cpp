// tests/bad: one description a kind of mistake, and beside each the whole text that it is met with.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "estimator/model/load_model.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

namespace {

namespace fs = std::filesystem;

const fs::path directory = fs::path(testing::source_path()) / "tests" / "bad";

std::string content_of(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  REQUIRE(stream);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// What `check` prints about a description, its name being the file's alone.
std::string complaints_about(const fs::path& path) {
  const auto source =
      std::make_shared<const SourceText>(SourceText{path.filename().string(), content_of(path)});
  const auto model = load_model(source);
  return render(model ? model->warnings : model.error());
}

}  // namespace

TEST_CASE("each bad description is met with its text") {
  const std::vector<std::string> names = model_names(directory.string());
  CHECK(names.size() >= 38);
  for (const std::string& name : names) {
    CAPTURE(name);
    CHECK(complaints_about(directory / (name + ".yaml")) ==
          content_of(directory / (name + ".txt")));
  }
}

TEST_CASE("only warnings leave a model") {
  for (const std::string& name : model_names(directory.string())) {
    CAPTURE(name);
    const auto source = std::make_shared<const SourceText>(
        SourceText{name, content_of(directory / (name + ".yaml"))});
    CHECK(load_model(source).has_value() == (name == "unused"));
  }
}

}  // namespace stowage
