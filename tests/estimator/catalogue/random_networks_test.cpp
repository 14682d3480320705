// Small random networks of every operator against PyTorch (tests/reference/random_networks.py).
//
// The committed sample is a part of what was compared; STOWAGE_NETWORKS names a file with more:
//   random_networks.py --count 2000 rows.json
//   STOWAGE_NETWORKS=rows.json build/tests/estimator_tests -tc="random networks*"
#include <doctest/doctest.h>

#include <cstdlib>

#include "tests/estimator/catalogue/operator_reference.hpp"

namespace stowage::reference {

TEST_CASE("random networks have PyTorch's shapes, parameters, saved tensors and peaks") {
  const Comparison sample = compare_operators("random");
  CHECK(sample.compared >= 60);
  CHECK(sample.disagreements == "");
  const char* more = std::getenv("STOWAGE_NETWORKS");
  if (more == nullptr) return;
  const Comparison comparison = compare_file(more);
  MESSAGE(comparison.compared);
  CHECK(comparison.disagreements == "");
}

}  // namespace stowage::reference
