// What `check --verbose` says of the workspaces of convolutions and of cuDNN's attention.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/output/json_value.hpp"
#include "cli/output/table.hpp"
#include "estimator/check/check.hpp"
#include "gpu_probe/cudnn/workspace_source.hpp"

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

[[nodiscard]] Table workspace_table(const std::vector<KernelWorkspace>& workspaces);
[[nodiscard]] Json workspaces_json(const std::vector<KernelWorkspace>& workspaces);

/// A warning where cuDNN serves the card and cannot be asked: the workspaces are then by rule.
[[nodiscard]] Diagnostics cudnn_notes(const CudnnWorkspaceSource& source);

}  // namespace stowage
