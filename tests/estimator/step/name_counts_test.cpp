#include "estimator/step/name_counts.hpp"

#include <doctest/doctest.h>

#include <string>

namespace stowage {

TEST_CASE("a name is counted each time it is asked for, through all growth") {
  NameCounts names;
  CHECK(names.count("conv") == 0);
  CHECK(names.count("conv") == 1);
  int repeated = 0;
  for (int i = 0; i < 10'000; ++i) repeated += names.count("conv." + std::to_string(i));
  CHECK(repeated == 0);
  CHECK(names.count("conv") == 2);
  CHECK(names.count("conv.4711") == 1);
  CHECK(names.count("conv.4711") == 2);
  CHECK(names.count("") == 0);
  CHECK(names.count("") == 1);
}

}  // namespace stowage
