// Models of torchvision and timm through `python -m stowage export`, as
// tests/reference/exported_models.py measured them beside eager PyTorch: parameters, saved storages
// and buffers are equal, or the model is named here with its reason.
#include <doctest/doctest.h>

#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tests/support/source_directory.hpp"

namespace stowage {

namespace {

using Json = nlohmann::json;

Json exported_models() {
  std::ifstream file(testing::source_path("/tests/reference/exported_models.json"));
  REQUIRE(file.good());
  return Json::parse(file).at("models");
}

/// convit_tiny's ten blocks begin with a buffer of three numbers, which is what a description has,
/// and replace it in their first step by one of three numbers for each pair of 196 patches.
constexpr std::int64_t convit_begins_with = std::int64_t{10} * 3 * 4;
constexpr std::int64_t convit_goes_on_with = convit_begins_with * 196 * 196;

}  // namespace

TEST_CASE("what is exported has PyTorch's parameters, saved storages and buffers") {
  for (const Json& row : exported_models()) {
    const auto model = row.at("model").get<std::string>();
    CAPTURE(model);
    if (!row.at("exported").get<bool>()) continue;
    CHECK(row.at("parameters").get<int>() > 0);
    CHECK(row.at("parameters_equal").get<bool>());
    CHECK(row.at("saved_equal").get<bool>());
    if (model == "timm:convit_tiny") {
      CHECK(row.at("buffer_bytes") == Json{convit_begins_with, convit_goes_on_with});
    } else {
      CHECK(row.at("buffers_equal").get<bool>());
    }
  }
}

TEST_CASE("what is not exported is known, with its reason") {
  // Attention among the samples of a batch, whose scores are quadratic in it.
  const std::set<std::string> known = {"timm:csatv2"};
  std::set<std::string> refused, all;
  for (const Json& row : exported_models()) {
    const auto model = row.at("model").get<std::string>();
    CHECK(all.insert(model).second);
    if (row.at("exported").get<bool>()) continue;
    refused.insert(model);
    CHECK(row.at("why").get<std::string>() != "");
  }
  CHECK(refused == known);
  CHECK(all.size() == 145);
}

}  // namespace stowage
