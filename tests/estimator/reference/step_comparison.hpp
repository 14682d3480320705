// A step's peaks against a trace of PyTorch's, as every reference file is compared.
#pragma once

#include <functional>
#include <string>

#include "estimator/memory/sized_step.hpp"
#include "tests/estimator/reference/reference_model.hpp"

namespace stowage::reference {

/// For each optimizer traced: the peak of each phase, the steady peak with every tensor rounded to
/// 512 bytes, and the first step's. CHECKs; what is known to differ is taken from
/// known_differences.hpp and unequal_steps.hpp. `step_with` makes our step with an optimizer of the
/// trace; `held_besides` is live throughout.
void compare_peaks(const ReferenceModel& reference,
                   const std::function<SizedStep(const std::string& optimizer)>& step_with,
                   Bytes held_besides = Bytes());

}  // namespace stowage::reference
