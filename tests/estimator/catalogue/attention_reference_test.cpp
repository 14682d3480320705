// Attention and its positions against PyTorch's CUDA path (tests/reference/attention_saved.py).
#include <doctest/doctest.h>

#include "tests/estimator/catalogue/operator_reference.hpp"

namespace stowage::reference {

TEST_CASE("attention saves and holds what PyTorch does, to the byte") {
  const Comparison comparison = compare_operators("attention");
  CHECK(comparison.disagreements == "");
  CHECK(comparison.compared >= 29);
}

}  // namespace stowage::reference
