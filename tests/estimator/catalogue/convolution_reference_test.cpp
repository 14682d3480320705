// Convolutions against PyTorch: shapes, parameters, saved storages, peaks.
#include <doctest/doctest.h>

#include "tests/estimator/catalogue/operator_reference.hpp"

namespace stowage::reference {

TEST_CASE("convolutions are PyTorch's") {
  const Comparison comparison = compare_operators("convolution");
  CHECK(comparison.disagreements == "");
  CHECK(comparison.compared >= 35);
}

}  // namespace stowage::reference
