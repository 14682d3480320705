// From a check's report to the library's rows.
#pragma once

#include <stowage/memory.hpp>

#include "estimator/card/card.hpp"
#include "estimator/check/check.hpp"

namespace stowage {

[[nodiscard]] MemoryPeak memory_peak(const CheckReport& report, const Card& card);

}  // namespace stowage
