// PlanPage, PytorchPlanPage: what a page about plans shows beside the answer: memory over the step
// on both sides, the four lanes, what lies where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "answers/planning/plan.hpp"
#include "answers/planning/pytorch_plan.hpp"
#include "answers/report/step_memory.hpp"
#include "planner/plan/lanes.hpp"

namespace stowage {

/// The plan's lanes: when each node runs, in seconds from the step's begin, and each copy, in the
/// order of Plan::transfers. The step takes as long as the plan's totals say.
[[nodiscard]] LaneTimeline lanes_of(const Plan& plan);

enum class StoredWhere : std::uint8_t {
  gpu,         ///< on the GPU alone, as long as it is there
  both_sides,  ///< it crosses PCIe in the step
  host,        ///< on the host alone
};

/// A storage of the plan's step, and on which side it lies.
struct StorageSides {
  StorageId storage;
  StoredWhere where = StoredWhere::gpu;
  Bytes bytes;
  int uploads = 0, downloads = 0;  ///< of a step
};
/// Those with bytes, the largest first.
[[nodiscard]] std::vector<StorageSides> storage_places(const Plan& plan);

struct PlanPage {
  std::size_t shown = 0;  ///< of PlanAnswer::plans: the chosen one, else the first
  MemoryOverStep gpu, pinned, pageable;
  LaneTimeline lanes;
  std::vector<StorageSides> places;
};
/// Precondition: there is a plan.
[[nodiscard]] PlanPage plan_page(const PlanAnswer& found);

struct PytorchPlanPage {
  std::size_t shown = 0;  ///< of PytorchAnswer::proposals: the chosen one, else the first
  MemoryOverStep memory;  ///< of the step as hooks run it
  Bytes room;             ///< what the card leaves PyTorch's allocator
};
/// `question`: what `found` answers. Precondition: there is a proposal. Errors: size_step's.
[[nodiscard]] Result<PytorchPlanPage> pytorch_plan_page(const PlanQuestion& question,
                                                        const PytorchAnswer& found);

}  // namespace stowage
