// The forms that a plan is exported to without a step being sized anew: its own decisions in the
// words of another program.
#pragma once

#include <vector>

#include "answers/exporting/export.hpp"
#include "planner/plan/plan.hpp"

namespace stowage {

/// Without pictures (ExportFormRow::is_picture), which every plan has. Each form's own text was
/// made of the plan once, so that its export is not refused. Programs first, then drawings and
/// lists for readers.
[[nodiscard]] std::vector<ExportForm> exports_of(const Plan& plan);

}  // namespace stowage
