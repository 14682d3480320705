// FittingNode: a node of plan_within's search.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "planner/assemble/lower_limits.hpp"
#include "planner/problem/residency_problem.hpp"

namespace stowage {

/// Limits to solve within, and the placement that was found within them, if any.
struct FittingNode {
  // Of the placement; before there is one, of the placement that did not pack before.
  double cost = 0;
  int number = 0;  // nodes with the same cost are taken in the order of their numbers
  std::optional<Placement> placement;
  StepLimits limits;
  StepLimits above;  // the higher limits, within which the placement did not pack
};
using FittingNodePtr = std::shared_ptr<const FittingNode>;

/// Orders a std::priority_queue so that the cheapest node is on top.
struct CheapestFirst {
  bool operator()(const FittingNodePtr& a, const FittingNodePtr& b) const {
    return std::pair(a->cost, a->number) > std::pair(b->cost, b->number);
  }
};

}  // namespace stowage
