#include "estimator/base/diagnostic.hpp"

#include <doctest/doctest.h>

#include <array>

namespace stowage {

TEST_CASE("a diagnostic shows its line with a caret") {
  const auto source = std::make_shared<const SourceText>(
      SourceText{"net.yaml", "layers:\n\t- conv2d: {chanels: 64}\n"});
  const Diagnostic diagnostic{
      .message = "unknown attribute 'chanels' of conv2d",
      .span = {source, 2, 13, 7},
      .hint = "did you mean 'channels'?",
      .notes = {{.severity = Severity::note, .message = "conv2d wants 'channels'"}}};
  CHECK(render(std::array{diagnostic}) ==
        "net.yaml:2:13: error: unknown attribute 'chanels' of conv2d\n"
        "   - conv2d: {chanels: 64}\n"
        "              ^~~~~~~\n"
        "  did you mean 'channels'?\n"
        "note: conv2d wants 'channels'\n");
}

TEST_CASE("a place past the text's end, or none, is printed without an excerpt") {
  const auto source = std::make_shared<const SourceText>(SourceText{"net.yaml", "a: 1\n"});
  CHECK(render(std::array{Diagnostic{.message = "ends early", .span = {source, 9, 1, 1}}}) ==
        "net.yaml:9:1: error: ends early\n");
  CHECK(render(std::array{Diagnostic{.severity = Severity::warning, .message = "odd"}}) ==
        "warning: odd\n");
}

TEST_CASE("a long line is shown around its caret") {
  const auto source = std::make_shared<const SourceText>(
      SourceText{"long.yaml", std::string(5000, 'a') + "X" + std::string(5000, 'b')});
  const std::string text =
      render(std::array{Diagnostic{.message = "here", .span = {source, 1, 5001, 1}}});
  CHECK(text.size() < 500);
  const auto caret = text.rfind('^');
  const auto line = text.rfind('\n', text.rfind('\n', caret) - 1) + 1;
  CHECK(text[line + (caret - text.rfind('\n', caret) - 1)] == 'X');
}

TEST_CASE("at most the limit is printed, and how many more there are") {
  std::vector<Diagnostic> many(25, Diagnostic{.message = "no"});
  const std::string text = render(many, 20);
  CHECK(text.substr(text.size() - 15) == "... and 5 more\n");
}

TEST_CASE("suggestions are near, or not given") {
  constexpr std::array<std::string_view, 3> names{"conv2d", "linear", "relu"};
  CHECK(closest("conv2D", names) == "conv2d");
  CHECK(closest("linaer", names) == "linear");
  CHECK(closest("softmax", names) == std::nullopt);
  CHECK(did_you_mean("rleu", names) == "did you mean 'relu'?");
  CHECK(did_you_mean("rel", names) == "did you mean 'relu'?");
}

}  // namespace stowage
