// How the workspaces of convolutions and of cuDNN's attention are shown: `check --verbose`.
#pragma once

#include <vector>

#include "answers/sizing/kernel_workspaces.hpp"
#include "cli/output/json_value.hpp"
#include "cli/output/table.hpp"

namespace stowage {

[[nodiscard]] Table workspace_table(const std::vector<KernelWorkspace>& workspaces);
[[nodiscard]] Json workspaces_json(const std::vector<KernelWorkspace>& workspaces);

}  // namespace stowage
