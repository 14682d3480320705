// FittingNode: a node of plan_within's search.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "planner/assemble/lower_limits.hpp"
#include "planner/problem/residency_problem.hpp"

namespace stowage {

/// Limits to solve within, or what was found within them.
struct FittingNode {
  double cost = 0;  // of the placement; where there is none yet that of what did not pack before
  int number = 0;   // of two with the same cost the one made first
  std::optional<Placement> placement;
  StepLimits limits, above;  // above: those within which the placement before did not pack
};
using FittingNodePtr = std::shared_ptr<const FittingNode>;
struct Dearer {
  bool operator()(const FittingNodePtr& a, const FittingNodePtr& b) const {
    return std::pair(a->cost, a->number) > std::pair(b->cost, b->number);
  }
};

}  // namespace stowage
