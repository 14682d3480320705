// How placements are told: where things are, why, and what else would cost.
#pragma once

#include <vector>

#include "cli/output/json_value.hpp"
#include "cli/output/report.hpp"
#include "cli/output/table.hpp"
#include "planner/explain/find_name.hpp"
#include "planner/explain/planned_problem.hpp"
#include "planner/plan/plan.hpp"

namespace stowage {

/// Every operator and variable of the plan, and what else leaves the GPU or never is there.
[[nodiscard]] NamedParts logged_things(const Plan& plan, const PlannedProblem& planned);

/// Rows of nodes, then of storages, each with its device and the reason.
struct ToldPlacement {
  Table table;
  Json json;  ///< an array
};
[[nodiscard]] ToldPlacement told_placement(const Plan& plan, const PlannedProblem& planned,
                                           const NamedParts& things);

/// The whole log of a plan as the report's last table, which is then its listing.
[[nodiscard]] Result<void> add_placement_log(const Plan& plan, Report& report);

/// "gpu", "cpu", or of a storage also "swapped".
[[nodiscard]] std::string_view device_word(Device device);

}  // namespace stowage
