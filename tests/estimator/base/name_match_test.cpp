// Names in messages.
#include "estimator/base/name_match.hpp"

#include <doctest/doctest.h>

#include <array>

namespace stowage {

TEST_CASE("a list ends with 'and', a long one with how many are left") {
  CHECK(listed({}).empty());
  CHECK(listed({"a"}) == "a");
  CHECK(listed({"a", "b"}) == "a and b");
  CHECK(listed({"a", "b", "c"}) == "a, b and c");
  CHECK(listed({"a", "b", "c"}, 3) == "a, b and c");
  CHECK(listed({"a", "b", "c", "d", "e"}, 3) == "a, b, c and 2 others");
}

TEST_CASE("of alternatives the last comes after 'or'") {
  constexpr std::array<std::string_view, 3> words{"a", "b", "c"};
  CHECK(alternatives(std::span(words).first(1)) == "'a'");
  CHECK(alternatives(std::span(words).first(2)) == "'a' or 'b'");
  CHECK(alternatives(words) == "'a', 'b' or 'c'");
}

TEST_CASE("names are folded to letters and digits, and letters put in lower case") {
  CHECK(folded_name("ResNet_50-v2") == "resnet50v2");
  CHECK(lower_case("GPU:0 Ünit") == "gpu:0 \xc3\x9cnit");
}

}  // namespace stowage
