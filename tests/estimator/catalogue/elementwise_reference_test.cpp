// Activations, arithmetic and layout against PyTorch: shapes, parameters, saved storages, peaks.
#include <doctest/doctest.h>

#include "tests/estimator/catalogue/operator_reference.hpp"

namespace stowage::reference {

TEST_CASE("activations are PyTorch's") {
  const Comparison comparison = compare_operators("activation");
  CHECK(comparison.disagreements == "");
  CHECK(comparison.compared >= 60);
}

TEST_CASE("arithmetic, reductions and dropout are PyTorch's") {
  const Comparison comparison = compare_operators("arithmetic");
  CHECK(comparison.disagreements == "");
  CHECK(comparison.compared >= 60);
}

TEST_CASE("losses are PyTorch's") {
  const Comparison comparison = compare_operators("loss");
  CHECK(comparison.disagreements == "");
  CHECK(comparison.compared >= 10);
}

TEST_CASE("joining, cutting, moving and reshaping are PyTorch's") {
  const Comparison comparison = compare_operators("layout");
  CHECK(comparison.disagreements == "");
  CHECK(comparison.compared >= 24);
}

}  // namespace stowage::reference
