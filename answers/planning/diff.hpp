// What differs between two plans.
#pragma once

#include <string>

#include "planner/explain/compare_plans.hpp"
#include "planner/plan/plan.hpp"

namespace stowage {

/// Two plans: files; one of them may be "-" for stdin.
struct DiffQuestion {
  std::string before, after;
};

struct DiffAnswer {
  Plan before, after;
  PlanComparison comparison;
  Diagnostics notes;  ///< where the plans are of different steps
};

/// Errors: a plan cannot be read.
[[nodiscard]] Result<DiffAnswer> answer(const DiffQuestion& question);

}  // namespace stowage
