// Recurrent networks against PyTorch's CUDA path (tests/reference/recurrent_saved.py).
#include <doctest/doctest.h>

#include "tests/estimator/catalogue/operator_reference.hpp"

namespace stowage::reference {

TEST_CASE("recurrent networks have PyTorch's parameters, saved tensors and peaks") {
  const Comparison comparison = compare_operators("recurrent");
  CHECK(comparison.disagreements == "");
  CHECK(comparison.compared >= 9);
}

}  // namespace stowage::reference
