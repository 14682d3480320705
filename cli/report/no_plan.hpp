// The answer where no plan keeps within the budget: the operation that breaks it, its items, and
// the smallest memory that would do, as a command to type.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "cli/options/request.hpp"
#include "cli/output/report.hpp"
#include "estimator/workspace/workspace_source.hpp"
#include "planner/plan/plan.hpp"
#include "planner/propose/plan_request.hpp"

namespace stowage {

/// What a card of that total, and the requested one's else, leaves for an arena.
using ArenaOfTotal = std::function<Bytes(Bytes)>;

/// `request` is what `asked` means. Adds to a report in which no plan was chosen the smallest GPU
/// memory found at which there is one, and the command that has it; nothing where none is found.
void add_least_memory(const PlanningRequest& asked, const PlanRequest& request,
                      const ArenaOfTotal& arena_of, WorkspaceSource& workspaces, Report& report);

/// What a host needs that holds one of the plans which leave the training as it is; none: there is
/// none of these.
[[nodiscard]] std::optional<Bytes> least_host_memory(const std::vector<Plan>& plans);
/// The same for the host: the least that one of the plans needs, all of which it cannot hold.
void add_least_host_memory(const PlanningRequest& asked, Bytes least, Report& report);

/// "no plan keeps within 20.0 KiB", then why, with its notes.
[[nodiscard]] Report no_plan_report(const PlanRequest& request, const Diagnostics& why);

}  // namespace stowage
