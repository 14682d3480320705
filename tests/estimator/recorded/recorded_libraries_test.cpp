// Models of torchvision and timm through `python -m stowage record`, as
// tests/reference/recorded_models.py measured them: what a recording has is what eager PyTorch has,
// tensor by tensor.
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tests/support/source_directory.hpp"

namespace stowage {

namespace {

nlohmann::json library_recordings() {
  std::ifstream file(testing::source_path("/tests/reference/recorded_models.json"));
  return nlohmann::json::parse(file);
}

bool comes_from(const std::string& model, const std::string& library) {
  return model.starts_with(library + ":");
}

}  // namespace

TEST_CASE(
    "recorded models of torchvision and timm have PyTorch's parameters, buffers, saved bytes") {
  const nlohmann::json rows = library_recordings().at("models");
  for (const nlohmann::json& row : rows) {
    CAPTURE(row.at("model").get<std::string>());
    REQUIRE(row.at("recorded").get<bool>());
    CHECK(row.at("parameters_equal").get<bool>());
    // ConViT replaces a buffer of its own in its first step, and has both for a while.
    const bool named = row.at("model") == "timm:convit_tiny";
    CHECK(row.at("buffers_equal").get<bool>() != named);
    if (named) CHECK(row.at("buffer_bytes") == nlohmann::json{4610040, 4609920});
    CHECK(row.at("saved_equal").get<bool>());
    // CSATv2 has scores that are quadratic in the batch.
    CHECK(row.at("fixed_batch").get<bool>() == (row.at("model") == "timm:csatv2"));
    CHECK(row.at("kernels").get<int>() > 0);
  }
}

TEST_CASE("each recorded model of a library is measured once, and both libraries are there") {
  const nlohmann::json rows = library_recordings().at("models");
  std::set<std::string> models;
  int torchvision = 0, timm = 0;
  for (const nlohmann::json& row : rows) {
    const auto model = row.at("model").get<std::string>();
    CAPTURE(model);
    CHECK(models.insert(model).second);
    torchvision += comes_from(model, "torchvision") ? 1 : 0;
    timm += comes_from(model, "timm") ? 1 : 0;
  }
  CHECK(torchvision == 80);
  CHECK(timm == 65);
  CHECK(torchvision + timm == static_cast<int>(models.size()));
}

}  // namespace stowage
