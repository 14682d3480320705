// The host that a plan is made for.
#pragma once

#include "cli/options/request.hpp"
#include "planner/problem/host.hpp"

namespace stowage {

/// A file's host as it is; else this machine, as its calibration has it. Either with the memory
/// that the request gives it, half of which may be pinned.
[[nodiscard]] Result<Host> requested_host(const PlanningRequest& asked);

}  // namespace stowage
