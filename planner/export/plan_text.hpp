// PlanText: a plan in the words of another program, with what that program makes of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "planner/plan/plan.hpp"

namespace stowage {

struct PlanText {
  std::string body;                  ///< the file's text, without a comment on its head
  std::vector<std::string> remarks;  ///< what of the plan it cannot say
  /// The most that is live on the GPU at once, where the program carries out no copies but those
  /// that it makes itself; none: the plan's own total holds.
  std::optional<Bytes> gpu_peak = {};
};

/// All that the plan decides, as JSON: where each node runs and when, where each storage lies from
/// when to when, and every copy. Storages' sizes stand beside them; the step's own graph does not.
[[nodiscard]] PlanText plan_json(const Plan& plan);

/// A Python file for TensorFlow: devices of layers and of variables' updates, the order of layers
/// where the step has one of its own, the memory limit. Errors: the plan is for another machine
/// than one GPU and its host.
[[nodiscard]] Result<PlanText> tensorflow_placement(const Plan& plan);

/// accelerate's device_map and max_memory, as JSON. Each parameter is under exactly one name of the
/// map; modules that share a parameter are on one device. Errors: as above; the plan trains; a name
/// of a parameter that no layer has.
[[nodiscard]] Result<PlanText> device_map(const Plan& plan);

}  // namespace stowage
