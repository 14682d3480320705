// Shares of the regions that may run again.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "planner/pytorch/module_regions.hpp"

namespace stowage {

/// Counts of the first regions to run again, ascending and distinct: none, all, and shares between.
[[nodiscard]] std::vector<std::size_t> shares_of(const std::vector<ModuleRegion>& regions);
[[nodiscard]] std::vector<ModuleRegion> first_of(const std::vector<ModuleRegion>& regions,
                                                 std::size_t count);
/// "offload", "checkpoint-3-of-16", "checkpoint-all"
[[nodiscard]] std::string share_name(std::size_t count, std::size_t regions);

}  // namespace stowage
