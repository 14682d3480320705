#include "estimator/base/shared.hpp"

#include <doctest/doctest.h>

#include <string>

namespace stowage {

TEST_CASE("copies are one place until one of them is changed") {
  Shared<std::string> first(std::string("cargo"));
  const Shared<std::string> second = first;
  CHECK(&*first == &*second);
  first.own() += " hold";
  CHECK(*first == "cargo hold");
  CHECK(*second == "cargo");
  const std::string* const place = &*first;
  CHECK(&first.own() == place);
}

TEST_CASE("an untouched one is the empty value") {
  Shared<std::string> untouched;
  CHECK(untouched->empty());
  CHECK(untouched == Shared<std::string>(std::string()));
  untouched.own() = "cargo";
  CHECK(*untouched == "cargo");
  CHECK(Shared<std::string>()->empty());
}

}  // namespace stowage
