// Padding, upsampling and pixel shuffling against PyTorch: shapes, saved storages, peaks.
#include <doctest/doctest.h>

#include "tests/estimator/catalogue/operator_reference.hpp"

namespace stowage::reference {

TEST_CASE("padding and resampling are PyTorch's") {
  const Comparison comparison = compare_operators("resampling");
  CHECK(comparison.disagreements == "");
  CHECK(comparison.compared >= 50);
}

}  // namespace stowage::reference
