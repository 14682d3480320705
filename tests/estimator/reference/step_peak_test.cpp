// Live bytes over whole training steps, phase by phase, against a trace of PyTorch's CUDA path:
// every storage that an operator returned, from there to its last release
// (tests/reference/README.md).
// One subcase a file: -sc="resnet*".
#include <doctest/doctest.h>

#include "tests/estimator/reference/step_comparison.hpp"

namespace stowage::reference {

TEST_CASE("the peak of each phase of a training step is PyTorch's, to the byte") {
  for (const ReferenceModel& reference : reference_models()) {
    if (!is_plain(reference)) continue;
    SUBCASE(reference.file.c_str()) { compare_peaks(reference); }
  }
}

}  // namespace stowage::reference
