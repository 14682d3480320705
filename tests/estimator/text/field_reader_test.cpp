#include "estimator/text/field_reader.hpp"

#include <doctest/doctest.h>

#include <memory>

using namespace stowage;

namespace {

enum class Colour { red, green };
std::string_view to_string(Colour colour) { return colour == Colour::red ? "red" : "green"; }

/// What stands wrong in the text, when a few fields are read in the given words.
std::string mistakes_of(const std::string& text, const FieldWords& words) {
  const auto document =
      read_yaml(std::make_shared<const SourceText>(SourceText{.name = "f.yaml", .text = text}));
  REQUIRE(document.has_value());
  Mistakes mistakes(document->source);
  FieldReader fields(*document->root, words, mistakes);
  std::string name;
  std::int64_t count = 0;
  double rate = 0;
  Bytes memory;
  bool on = false;
  Colour colour = Colour::red;
  fields.word("name", name, Presence::optional, "a name");
  fields.integer("count", 1, 10, count, Presence::optional);
  fields.quantity("rate", rate, byte_rate_units, Presence::optional, "a rate such as 40 GB/s");
  fields.size("memory", memory, Presence::optional, "24 GiB");
  fields.boolean("on", on);
  fields.choice("colour", std::array{Colour::red, Colour::green}, colour);
  fields.finish();
  std::string found;
  for (const Diagnostic& mistake : std::move(mistakes).in_order()) {
    found += fmt::format("{}:{} {}", mistake.span.line, mistake.span.column, mistake.message);
    if (!mistake.hint.empty()) found += " (" + mistake.hint + ")";
    found += '\n';
  }
  return found;
}

}  // namespace

TEST_CASE("fields that are right are no mistakes") {
  CHECK(mistakes_of("name: n\ncount: 10\nrate: 2 GB/s\nmemory: 1 GiB\non: true\ncolour: green\n",
                    {.of = "the thing"}) == "");
}

TEST_CASE("what is wrong with fields is told in the order of the text, in the mapping's words") {
  const std::string text =
      "memory: 400\nrate: [1]\ncount: '3'\nname: ''\ncolour: blue\nmemry: 1 GiB\n";
  CHECK(mistakes_of(text, {.of = "the thing"}) ==
        "1:1 the thing lacks 'on'\n"
        "1:9 'memory' must be a size such as 24 GiB, not '400'\n"
        "2:7 'rate' must be a rate such as 40 GB/s, not a list\n"
        "3:8 'count' must be an integer from 1 to 10, not '3'\n"
        "4:7 'name' is empty\n"
        "5:9 'colour' must be red or green, not 'blue'\n"
        "6:1 the thing has no 'memry' (did you mean 'memory'?)\n");
  using enum FieldWords::Refusal;
  CHECK(mistakes_of("on: true\ncolour: red\nmemory: 400\nrat: 1\n",
                    {.of = "the host", .file = "a host file", .refusal = takes}) ==
        "3:9 'memory' takes a size such as 24 GiB, not '400'\n"
        "4:1 unknown key 'rat' in a host file (did you mean 'rate'?)\n");
  CHECK(mistakes_of("on: true\ncolour: red\nmemory: 400\nrate: {}\n",
                    {.of = "the card", .refusal = is_not}) ==
        "3:9 'memory' is not a size such as 24 GiB: '400'\n"
        "4:7 'rate' takes one plain value, not a mapping\n");
}

TEST_CASE("a node that is no mapping has no fields") {
  CHECK(mistakes_of("- 1\n", {.of = "'totals'"}) == "1:1 'totals' must be a mapping, not a list\n");
}
