#include "cli/options/setting_names.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <string>

#include "answers/question/question_error.hpp"
#include "cli/options/option.hpp"
#include "tests/support/source_directory.hpp"

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

TEST_CASE("settings' names become options, and other words between backquotes stay") {
  CHECK(in_options("`eval_batch` 7: no such batch") == "--eval-batch 7: no such batch");
  CHECK(in_options("without `fsdp` and `zero` it is") == "without --fsdp and --zero it is");
  CHECK(in_options("`stowage summary` prints `batch` and `nothing`") ==
        "`stowage summary` prints --batch and `nothing`");
  CHECK(in_options("one ` alone, `batch`") == "one ` alone, --batch");
  CHECK(in_options("`unclosed") == "`unclosed");
  CHECK(in_options("there is no model '`batch`'") == "there is no model '`batch`'");
  CHECK(in_options("cannot read 'a`batch`.yaml'") == "cannot read 'a`batch`.yaml'");
  CHECK(in_options("(`gpu`)") == "(--gpu)");
}

TEST_CASE("a mistake in the question is told as one of the command line") {
  const Diagnostics told = in_options(Diagnostics{question_error("`batch` 0", "use `seq` 2")});
  CHECK(render(told) == "<command line>: error: --batch 0\n  use --seq 2\n");
}

// Texts of answers name settings between backquotes: each must be one that the command line has.
TEST_CASE("every setting that an answer's text names has an option") {
  namespace fs = std::filesystem;
  const std::regex named("\"[^\"\n]*?`([a-z_]+)`");
  int found = 0;
  for (const char* room : {"/answers", "/cli/report", "/cli/commands"}) {
    for (const auto& entry : fs::recursive_directory_iterator(testing::source_path(room))) {
      if (entry.path().extension() != ".cpp") continue;
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);) {
        const std::regex each("`([a-z_]+)`");
        if (line.find("//") != line.npos || !std::regex_search(line, named)) continue;
        for (std::sregex_iterator at(line.begin(), line.end(), each), end; at != end; ++at) {
          CAPTURE(entry.path().string());
          CAPTURE(line);
          CHECK(find_option(option_word((*at)[1].str())) != nullptr);
          ++found;
        }
      }
    }
  }
  CHECK(found > 60);
}
