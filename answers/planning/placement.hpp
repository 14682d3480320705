// Where the operators and variables of a plan are, and why, as rows.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "planner/explain/find_name.hpp"
#include "planner/explain/placement_log.hpp"
#include "planner/explain/planned_problem.hpp"
#include "planner/plan/plan.hpp"

namespace stowage {

/// "gpu" or "cpu".
[[nodiscard]] std::string_view device_word(Device device);

enum class PlacedKind { kernel, variable, storage };

struct PlacedRow {
  PlacedKind kind = PlacedKind::kernel;
  std::string_view device;  ///< "gpu", "cpu", or of a storage also "swapped"
  std::string name;
  Bytes bytes;  ///< of a variable or a storage
  PlacementReason reason;
};

/// Rows of kernels, then of storages, each with its device and the reason.
[[nodiscard]] std::vector<PlacedRow> placed_rows(const Plan& plan, const PlannedProblem& planned,
                                                 const NamedThings& things);

/// The whole log of a plan: every kernel and variable, and what else leaves the GPU or never is
/// there. Errors: as planned_problem's.
[[nodiscard]] Result<std::vector<PlacedRow>> placement_log(const Plan& plan);

}  // namespace stowage
