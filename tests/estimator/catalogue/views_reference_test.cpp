// Operators of tensors that do not lie contiguously in memory, and autocast's formats, against
// PyTorch: what they save, and the peaks.
#include <doctest/doctest.h>

#include <set>
#include <sstream>
#include <string>

#include "tests/estimator/catalogue/operator_reference.hpp"

namespace stowage::reference {

TEST_CASE("operators of views are PyTorch's, some with channels innermost aside") {
  const Comparison comparison = compare_operators("views");
  CHECK(comparison.compared == 74);
  CHECK(comparison.same_shapes == 74);
  std::set<std::string> unequal;
  std::istringstream lines(comparison.disagreements);
  for (std::string line; std::getline(lines, line);) unequal.insert(line.substr(0, line.find(':')));
  // See channels_last_reference_test.cpp.
  CHECK(unequal == std::set<std::string>{"group_norm of channels last", "rms_norm of channels last",
                                         "upsample of channels last"});
}

}  // namespace stowage::reference
