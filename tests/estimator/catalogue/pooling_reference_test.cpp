// Pooling against PyTorch: shapes, saved storages, peaks.
#include <doctest/doctest.h>

#include "tests/estimator/catalogue/operator_reference.hpp"

namespace stowage::reference {

TEST_CASE("poolings are PyTorch's") {
  const Comparison comparison = compare_operators("pooling");
  CHECK(comparison.disagreements == "");
  CHECK(comparison.compared >= 35);
}

}  // namespace stowage::reference
