// What the operating system lets this process have of its machine: the limits of its control groups
// (Linux's cgroups, both versions) and of locked memory.
//
// A process is within a control group and all of that group's ancestors: the least limit counts.
// Containers mostly see their own group as the root. What cannot be read limits nothing.
#pragma once

#include <optional>
#include <string>

#include "estimator/base/bytes.hpp"

namespace stowage {

struct HostLimits {
  std::optional<Bytes> memory;     ///< of the control groups
  std::optional<Bytes> available;  ///< of that, what is not in use; caches of files are given back
  std::optional<double> cores;     ///< processor time that may be used, in cores
  std::optional<Bytes> locked;     ///< RLIMIT_MEMLOCK, `ulimit -l`
};

/// `root`: of the file system, so that a test may put its own in its place.
[[nodiscard]] HostLimits host_limits(const std::string& root = "");

}  // namespace stowage
