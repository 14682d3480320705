// FSDP's settings in words, for answers and for what contradicts a step's file.
#pragma once

#include <string>

#include "estimator/step/data_parallel.hpp"

namespace stowage {

/// "FSDP, not resharded after forward, reduced in bfloat16"
[[nodiscard]] std::string fsdp_text(const FullyShard& fsdp);

}  // namespace stowage
