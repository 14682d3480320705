// The README counts what is shipped.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <string>

#include "estimator/card/card.hpp"
#include "estimator/huggingface/families.hpp"
#include "estimator/model/load_model.hpp"
#include "estimator/model/operator_row.hpp"
#include "tests/support/source_directory.hpp"

namespace stowage {

TEST_CASE("the counts of the README and its tables are those of what is shipped") {
  std::string readme;
  for (const char* page : {"/README.md", "/docs/tour.md", "/docs/evidence.md"}) {
    std::ifstream file(testing::source_path(page));
    const std::string text(std::istreambuf_iterator<char>(file), {});
    REQUIRE_FALSE(text.empty());
    readme += text;
  }
  const auto cards = all_cards(testing::source_path("/configs/gpus"));
  REQUIRE(cards.has_value());
  const std::size_t models = model_names(testing::source_path("/configs/models")).size();
  for (const std::string& text : {fmt::format("{} cards are catalogued", cards->size()),
                                  fmt::format("(`stowage models` lists {})", models),
                                  fmt::format("`stowage models` lists {} networks", models),
                                  fmt::format("all {} models", models),
                                  fmt::format("of {} operators", operator_catalogue().size()),
                                  fmt::format("| {} model types, offline", families().size())}) {
    CAPTURE(text);
    CHECK(readme.find(text) != std::string::npos);
  }
}

}  // namespace stowage
