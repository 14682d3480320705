// Operators under autocast to bfloat16 against PyTorch: shapes, parameters, saved storages, peaks.
// Normalizations have such rows in their own file.
#include <doctest/doctest.h>

#include "tests/estimator/catalogue/operator_reference.hpp"

namespace stowage::reference {

TEST_CASE("operators under autocast are PyTorch's") {
  const Comparison comparison = compare_operators("autocast");
  CHECK(comparison.disagreements == "");
  CHECK(comparison.compared == 150);
}

}  // namespace stowage::reference
