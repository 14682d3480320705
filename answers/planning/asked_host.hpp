// The host that a plan is made for.
#pragma once

#include "answers/planning/plan_question.hpp"
#include "planner/problem/host.hpp"

namespace stowage {

/// A file's host as it is; else this machine, as its calibration has it. Either with the memory
/// that the question gives it, half of which may be pinned.
[[nodiscard]] Result<Host> find_asked_host(const PlanQuestion& asked);

}  // namespace stowage
