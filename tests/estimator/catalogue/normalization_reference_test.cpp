// Normalizations against PyTorch: shapes, parameters, buffers, saved storages, peaks.
#include <doctest/doctest.h>

#include "tests/estimator/catalogue/operator_reference.hpp"

namespace stowage::reference {

TEST_CASE("normalizations are PyTorch's") {
  const Comparison comparison = compare_operators("normalization");
  CHECK(comparison.disagreements == "");
  CHECK(comparison.compared >= 140);
}

}  // namespace stowage::reference
