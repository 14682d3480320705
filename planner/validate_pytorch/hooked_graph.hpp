// The step as a plan has PyTorch run it, rewritten by the validator: in one pass over the nodes,
// from the plan's own points.
//
//   before a node   pieces of streamed parameters; what backward's begin lets go; fetched storages
//   the node        reads fetched storages and pieces; holds what is let go behind it
//   behind it       copies to the host of what has been saved; of gradients that are whole; early
//                   updates
#pragma once

#include <cstdint>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "planner/validate_pytorch/host_stays.hpp"
#include "planner/validate_pytorch/moved_updates.hpp"
#include "planner/validate_pytorch/streamed_modules.hpp"

namespace stowage {

/// What the hooks do to a stay's storage before a node runs; those of one node are in this order.
struct HookPoint {
  enum class Kind : std::uint8_t { copy_begins, let_go, fetched, needed };
  NodeId before;
  Kind kind = Kind::copy_begins;
  std::size_t stay = 0;
};

struct HookedGraph {
  StepGraph step;
  std::vector<HookPoint> points;  ///< in the order in which they are passed
  std::vector<NodeId> copies;     ///< the nodes that copy stays, ascending
};

/// A gradient that is whole when the node `after` has run, by which its parameter is updated.
struct GradientOfParameter {
  NodeId after;
  StorageId gradient, value;  ///< `value`: the parameter
  ParameterId parameter;
};

/// In the order in which they become whole. O(gradients + arguments).
[[nodiscard]] std::vector<GradientOfParameter> gradients_of_parameters(const StepGraph& step);

/// Precondition: the stays, the pieces and the updates have been checked. The micro-batch is unset
/// where updates move. An update's kernels have a part for each parameter that moves, which is the
/// estimator's (parameter_updates.hpp). O(arguments + stays + pieces * log pieces).
[[nodiscard]] HookedGraph hooked_graph(StepGraph step, const std::vector<StayOnHost>& stays,
                                       const std::vector<PieceOfModule>& pieces,
                                       const MovedUpdates& updates);

/// An inference's step in equal parts of its batch, one after the other. Precondition: its inputs
/// and its output begin with the batch, or an input does not follow it.
[[nodiscard]] StepGraph graph_in_parts(StepGraph step, std::int64_t parts);

}  // namespace stowage
