// PackedStep: a placement whose arena is within the budget, and where its blocks lie.
#pragma once

#include <vector>

#include "estimator/base/bytes.hpp"
#include "planner/problem/residency_problem.hpp"

namespace stowage {

struct PackedStep {
  Placement placement;
  std::vector<Bytes> offsets;  ///< one a request of its kept_claims (arena_claims.hpp)
  double cost_seconds = 0;
};

}  // namespace stowage
