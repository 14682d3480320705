// without_idle_gaps: drops gaps over which a copy on the GPU is of no use.
#pragma once

#include <vector>

#include "planner/problem/residency_problem.hpp"

namespace stowage {

/// `resident` without idle gaps. A gap is idle if it begins or ends at an operation on the CPU and
/// the copy goes no further on that side: nothing on the GPU reads the copy there, so it may come
/// later or leave earlier. Gaps that are pinned resident stay. `resident`: by gap of the item.
/// Linear.
[[nodiscard]] std::vector<bool> without_idle_gaps(const Item& item,
                                                  const std::vector<Device>& device,
                                                  std::vector<bool> resident);

}  // namespace stowage
