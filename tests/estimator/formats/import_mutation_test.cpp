// Files of other formats with their bytes changed: each gives a description that can be loaded, or
// complaints, and never a crash or a hang. STOWAGE_MUTATIONS says how many to try.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "estimator/formats/import_model.hpp"
#include "estimator/model/load_model.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

namespace {

constexpr unsigned import_seed = 20262;

std::vector<std::string> sample_files() {
  std::vector<std::string> texts;
  for (const char* path :
       {"/tests/onnx/resnet18.onnx", "/tests/keras/cnn.json", "/tests/keras/sequence.json",
        "/tests/keras/nested.json", "/tests/keras/shapes.json", "/tests/keras/residual.json"}) {
    std::ifstream file(testing::source_path(path), std::ios::binary);
    texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    REQUIRE(!texts.back().empty());
  }
  return texts;
}

std::string changed(std::string text, std::mt19937& random) {
  constexpr unsigned longest_part = 200;
  for (unsigned edit = 0; edit <= random() % 4; ++edit) {
    const std::size_t at = random() % text.size();
    const std::size_t length = 1 + random() % longest_part;
    switch (random() % 5) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, text.substr(random() % text.size(), length));
        break;
      case 2:
        text.resize(std::max<std::size_t>(at, 16));
        break;
      default:
        text[at] = static_cast<char>(random());
    }
    if (text.size() < 16) return text;
  }
  return text;
}

}  // namespace

TEST_CASE("files of other formats with their bytes changed") {
  const char* const wish = std::getenv("STOWAGE_MUTATIONS");
  const int rounds = wish != nullptr ? std::atoi(wish) : 300;
  const std::vector<std::string> samples = sample_files();
  std::mt19937 random(import_seed);
  int loaded = 0;
  for (int round = 0; round < rounds; ++round) {
    CAPTURE(round);
    const std::string text = changed(samples[random() % samples.size()], random);
    const ImportOptions options{
        .seq = round % 3 == 0 ? std::optional<std::int64_t>(8) : std::nullopt,
        .allow_unknown = round % 2 == 0};
    const auto imported = import_model(
        file_head_of(std::make_shared<const SourceText>(SourceText{"mutant", text})), options);
    if (!imported) {
      REQUIRE(!render(imported.error()).empty());
      continue;
    }
    if (!*imported) continue;
    const auto model = load_model((*imported)->description);
    if (!model) REQUIRE(!render(model.error()).empty());
    loaded += model ? 1 : 0;
  }
  MESSAGE(rounds, " mutants, ", loaded, " loaded");
  CHECK(loaded > 0);
}

TEST_CASE("descriptions are of no foreign format") {
  for (const auto& entry :
       std::filesystem::directory_iterator(testing::source_path("/configs/models"))) {
    const auto imported = import_model(read_file_head(entry.path().string()), {});
    CAPTURE(entry.path().string());
    REQUIRE(imported.has_value());
    CHECK_FALSE(imported->has_value());
  }
}

}  // namespace stowage
