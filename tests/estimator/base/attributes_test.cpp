#include "estimator/base/attributes.hpp"

#include <doctest/doctest.h>

namespace stowage {

TEST_CASE("copies of attributes share their entries until a value differs") {
  Attributes own;
  own.set("kernel", std::vector<std::int64_t>{3, 3});
  own.set("bias", false);
  Attributes copy = own;
  copy.set("bias", false);
  CHECK(&copy.entries() == &own.entries());
  copy.set("bias", true);
  CHECK(copy.boolean("bias"));
  CHECK_FALSE(own.boolean("bias"));
  CHECK(copy.entries()[0].first == "kernel");
  copy.set("axis", std::int64_t{1});
  CHECK(copy.has("axis"));
  CHECK_FALSE(own.has("axis"));
  CHECK_FALSE(copy == own);
}

}  // namespace stowage
