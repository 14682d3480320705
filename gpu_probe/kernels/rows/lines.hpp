// Launches over the lines of a tensor along one axis.
#pragma once

#include "gpu_probe/kernels/bodies/lines.hpp"
#include "gpu_probe/kernels/rows/launch.hpp"

namespace stowage::kernels {

/// Launches a body that has both forms (bodies/lines.hpp), in the form that reads neighbouring
/// addresses.
template <class Body>
[[nodiscard]] Launch each_line(const Body& body, const body::Lines& lines, std::int64_t count) {
  return lines.inner == 1 ? each_group(body, count, threads_for(lines.length))
                          : each_index(body, count);
}

}  // namespace stowage::kernels
