// Why something of a plan is where it is, and what the step would cost if it were elsewhere.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "answers/planning/placement.hpp"
#include "planner/explain/alternatives.hpp"

namespace stowage {

struct ExplainQuestion {
  std::string plan;  ///< a file, or "-" for stdin
  std::string name;  ///< of a kernel, a storage, a layer or a scope
};

struct ExplainAnswer {
  Plan plan;
  std::string name;
  std::size_t kernels = 0, storages = 0;  ///< that the name stands for
  std::vector<PlacedRow> placement;
  std::vector<AlternativeCost> costs;  ///< first the plan as it is
};

/// Errors: the plan cannot be read; nothing has the name, with a suggestion.
[[nodiscard]] Result<ExplainAnswer> answer(const ExplainQuestion& question);

}  // namespace stowage
