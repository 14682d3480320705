// A step's peaks against a trace of PyTorch's, as every reference file is compared.
#pragma once

#include "tests/estimator/reference/reference_model.hpp"

namespace stowage::reference {

/// For each optimizer traced: the peak of each phase, the steady peak with every tensor rounded to
/// 512 bytes, and the first step's. CHECKs; what is known to differ is taken from
/// known_differences.hpp.
void compare_peaks(const ReferenceModel& reference);

}  // namespace stowage::reference
