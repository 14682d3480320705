// The workspaces of a step's kernels, one by one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/check/check.hpp"

namespace stowage {

struct KernelWorkspace {
  std::string node;            ///< "conv1.backward.data"
  std::string layer;           ///< "conv1"; "" where the kernel belongs to none
  std::string_view direction;  ///< "forward", "data gradient", "filter gradient", "backward"
  Engine engine;               ///< the one that the step is taken to run with
  /// With cudnn.benchmark: what the winner wants at least (`engine` is the most), and the buffer in
  /// which the engines are timed, with room for all.
  std::optional<Bytes> least, timed_in;
};

/// In the step's order; one for each kernel that a WorkspaceSource was asked about, also for those
/// that want none.
[[nodiscard]] std::vector<KernelWorkspace> kernel_workspaces(const SizedStep& step,
                                                             const CheckReport& report);

}  // namespace stowage
