#include "estimator/step/unique_names.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>

namespace stowage {

namespace {

struct Thing {
  std::string name;
};

std::vector<std::string> numbered(const std::vector<std::string>& names, std::size_t first = 0) {
  std::vector<Thing> things;
  for (const std::string& name : names) things.push_back({name});
  number_repetitions(things, first);
  std::vector<std::string> result;
  for (const Thing& thing : things) result.push_back(thing.name);
  return result;
}

}  // namespace

TEST_CASE("the second and later ones of a name are numbered, in their order") {
  using Names = std::vector<std::string>;
  CHECK(numbered({}) == Names{});
  CHECK(numbered({"a"}) == Names{"a"});
  CHECK(numbered({"a", "b", "a", "", "a", "b", ""}) ==
        Names{"a", "b", "a~2", "", "a~3", "b~2", "~2"});
  CHECK(numbered({"a", "a", "a"}, 1) == Names{"a", "a", "a~2"});
}

TEST_CASE("names by the ten thousand are numbered as a count of each would") {
  std::vector<std::string> names;
  for (std::uint32_t i = 0, drawn = 1; i < 30'000; ++i) {
    drawn = drawn * 1664525 + 1013904223;
    names.push_back(fmt::format("unit.{}.conv.weight", (drawn >> 8) % 20'000));
  }
  std::vector<std::string> expected;
  std::map<std::string, int> count;
  int repeated = 0;
  for (const std::string& name : names) {
    const int number = ++count[name];
    expected.push_back(number == 1 ? name : fmt::format("{}~{}", name, number));
    repeated += number == 1 ? 0 : 1;
  }
  CHECK(repeated > 10'000);
  CHECK(numbered(names) == expected);
}

}  // namespace stowage
