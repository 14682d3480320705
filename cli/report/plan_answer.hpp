// How plans and their proofs are shown.
#pragma once

#include <string>

#include "answers/planning/plan.hpp"
#include "cli/options/advice.hpp"
#include "cli/output/rendered_answer.hpp"

namespace stowage {

struct PlanDetail {
  bool log_placement = false;
  bool verbose = false;  ///< every gap, not only that of what was minimised
};

/// The proposals side by side and the chosen one; or why there is none, and what would do. `typed`:
/// to be repeated in advice. Errors: those of the placement log.
[[nodiscard]] Result<RenderedAnswer> rendered(const PlanAnswer& found, const PlanQuestion& question,
                                              const TypedWords& typed, const PlanDetail& detail);

/// A frontier that lies at `path`, or, where a search was stopped before it had a point, none. Sets
/// the exit code of an interrupted command.
void add_frontier(const Frontier& frontier, const std::string& path, bool was_interrupted,
                  RenderedAnswer& answer);

/// Says that the plan is written, and the commands that take its file: `written` and `next` in
/// JSON.
void add_written_plan(const Plan& plan, const std::string& path, Report& report);

}  // namespace stowage
