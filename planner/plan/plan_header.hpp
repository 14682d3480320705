// The first document of a plan file: name, inputs, machine, totals, remarks and the description.
// Internal to planner/plan/read_plan.cpp.
#pragma once

#include "estimator/base/batch.hpp"
#include "estimator/base/diagnostic.hpp"
#include "estimator/text/yaml_document.hpp"
#include "planner/plan/plan.hpp"

namespace stowage {

struct PlanHeader {
  Plan plan;  ///< without its step and its tables
  WholeBatch batch;
  Mark batch_mark;
};

/// Errors: all mistakes, with their places.
[[nodiscard]] Result<PlanHeader> read_plan_header(SourceTextPtr source);

}  // namespace stowage
