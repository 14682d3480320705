// How placements are shown: where things are, and why.
#pragma once

#include <vector>

#include "answers/planning/placement.hpp"
#include "cli/output/json_value.hpp"
#include "cli/output/report.hpp"
#include "cli/output/table.hpp"

namespace stowage {

[[nodiscard]] Table placement_table(const std::vector<PlacedRow>& rows);
[[nodiscard]] Json placement_json(const std::vector<PlacedRow>& rows);

/// The whole log of a plan as the report's last table, which is then its listing.
[[nodiscard]] Result<void> add_placement_log(const Plan& plan, Report& report);

}  // namespace stowage
