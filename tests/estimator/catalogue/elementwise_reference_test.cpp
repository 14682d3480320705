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

TEST_CASE("further functions of single elements, of two and of three tensors are PyTorch's") {
  const Comparison comparison = compare_operators("function");
  CHECK(comparison.disagreements == "");
  CHECK(comparison.compared >= 60);
}

TEST_CASE("extrema, variances, norms and running sums are PyTorch's") {
  const Comparison comparison = compare_operators("reduction");
  CHECK(comparison.disagreements == "");
  CHECK(comparison.compared >= 60);
}

TEST_CASE("elements by index, masks, repetition and windows as columns are PyTorch's") {
  const Comparison comparison = compare_operators("indexing");
  CHECK(comparison.disagreements == "");
  CHECK(comparison.compared >= 30);
}

TEST_CASE("computed filters and weights, and einsum, are PyTorch's") {
  const Comparison comparison = compare_operators("product");
  CHECK(comparison.disagreements == "");
  CHECK(comparison.compared >= 20);
}

}  // namespace stowage::reference
