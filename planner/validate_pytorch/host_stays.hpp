// The plan's entries of saved tensors, held against the step: which storage each one is, and
// whether its copies and its memory come and go in an order that keeps every value.
#pragma once

#include <vector>

#include "planner/pytorch/pytorch_plan.hpp"
#include "planner/validate/checks.hpp"
#include "planner/validate_pytorch/plan_places.hpp"
#include "planner/validate_pytorch/saved_calls.hpp"

namespace stowage {

/// A storage that is on the host between forward and backward, by nodes of the step.
struct StayOnHost {
  StorageId storage;
  NodeId copied;     ///< the copy there begins behind this node
  NodeId let_go;     ///< its memory is let go behind this node ...
  bool at_backward;  ///< ... or, with `let_go`, right before backward asks for its first tensor
  NodeId fetched;    ///< memory is taken again before this node
  NodeId needed;     ///< backward asks for it before this node
};

struct HostStays {
  std::vector<StayOnHost> stays;  ///< of the entries without a violation
  Check tensors;  ///< "saved tensors": each key is the step's, with its shape, its type, its bytes
  Check owners;   ///< "nothing else holds them": memory that is let go is free then
  Check order;    ///< "order of copies"
};

/// `step`: with the plan's modules checkpointed.
[[nodiscard]] HostStays find_host_stays(const PytorchPlan& plan, const PlanPlaces& places,
                                        const StepGraph& step, const SavedCalls& calls);

}  // namespace stowage
