// ProcessLimits: how much of the machine the operating system lets this process use, by its control
// groups (Linux's cgroups, both versions) and its limit of locked memory.
//
// A process belongs to a control group and to all of that group's ancestors; the smallest limit
// counts. In a container the process's own group mostly appears as the root. A file that cannot be
// read sets no limit.
#pragma once

#include <optional>
#include <string>

#include "estimator/base/bytes.hpp"

namespace stowage {

struct ProcessLimits {
  std::optional<Bytes> memory;     ///< the control groups' limit
  std::optional<Bytes> available;  ///< the part not in use; caches of files count as free
  std::optional<double> cores;     ///< processor time that may be used, in cores
  std::optional<Bytes> locked;     ///< RLIMIT_MEMLOCK, `ulimit -l`
};

/// `root`: of the file system. Tests replace it.
[[nodiscard]] ProcessLimits process_limits(const std::string& root = "");

}  // namespace stowage
