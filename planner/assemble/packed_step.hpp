// PackedStep: a placement whose arena is within the budget, and the offsets of its blocks.
#pragma once

#include <vector>

#include "estimator/base/bytes.hpp"
#include "planner/problem/residency_problem.hpp"

namespace stowage {

struct PackedStep {
  Placement placement;
  std::vector<Bytes> offsets;  ///< one for each request of its kept_claims (arena_claims.hpp)
  double cost_seconds = 0;
};

}  // namespace stowage
