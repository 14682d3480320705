#include "cli/options/setting_names.hpp"

#include <doctest/doctest.h>

using namespace stowage;

TEST_CASE("every cure has words of its own and an option in their place") {
  for (int i = 0; i < cure_count; ++i) {
    const auto cure = static_cast<Cure>(i);
    const std::string words(in_words(cure));
    CAPTURE(words);
    REQUIRE_FALSE(words.empty());
    CHECK(words.find("--") == std::string::npos);
    const std::string option(in_options(cure));
    CHECK(option.find("--") != std::string::npos);
    CHECK(in_options(words) == option);
    CHECK(in_options(hint_of("do otherwise", cure)) == "do otherwise, or " + option);
    for (int j = 0; j < cure_count; ++j) {
      if (i == j) continue;
      CHECK(words.find(in_words(static_cast<Cure>(j))) == std::string::npos);
    }
  }
}

TEST_CASE("diagnostics name the options that their values came from") {
  const auto place = std::make_shared<const SourceText>(SourceText{"<arguments>", "width=0"});
  const Diagnostics told = in_options(Diagnostics{
      {.message = "no", .span = {place, 1, 1, 5}, .hint = hint_of(Cure::smaller_batch)}});
  CHECK(render(told) ==
        "<option --set>:1:1: error: no\n  width=0\n  ^~~~~\n  give a smaller --batch\n");
}
