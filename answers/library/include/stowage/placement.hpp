// What to keep on the CPU's side of PCIe so that a step fits and is fastest.
#pragma once

#include <cstdint>
#include <optional>
#include <stowage/message.hpp>
#include <stowage/model.hpp>
#include <string>
#include <vector>

namespace stowage {

struct PlacementQuestion {
  StepSpec step;
  GpuSpec gpu;
  std::optional<std::int64_t> batch;  ///< absent: a step file's own, or 1
  std::optional<std::int64_t>
      budget_bytes;  ///< for the GPU's arena; absent: all that the card leaves
  std::optional<std::int64_t> host_memory_bytes;  ///< absent: a generic host's
  std::string choose;                             ///< a plan's name; empty: the fastest that may be
  int effort = 1;  ///< up to how many times the usual work: more never finds less
  /// Stops the search by the clock: what is found then depends on the machine. Absent: no limit.
  std::optional<double> time_limit_seconds;
};

struct PlacementPlan {
  std::string name;  ///< "cheapest", "min-pcie", "micro-batch-2"
  double step_seconds = 0;
  std::optional<double> step_lower_bound_seconds;     ///< no plan of its kind is faster
  std::int64_t arena_bytes = 0;                       ///< of the GPU
  std::int64_t host_bytes = 0, pageable_bytes = 0;    ///< of pinned and of pageable host memory
  std::int64_t to_gpu_bytes = 0, from_gpu_bytes = 0;  ///< over PCIe, a step
  std::int64_t pcie_lower_bound_bytes = 0;
  bool changes_training = false;
  std::string in_words;  ///< what it moves
};

struct PlacementAnswer {
  std::vector<PlacementPlan> plans;   ///< each checked by the validator
  std::optional<std::size_t> chosen;  ///< of `plans`; absent: none fits, or none is taken unasked
  std::string file;                   ///< of the chosen plan, as `stowage plan -o` writes it
  std::int64_t budget_bytes = 0;
  std::string why_none;  ///< where there are no plans: the kernel that breaks the budget
  std::optional<std::int64_t> least_arena_bytes;  ///< that would do, where none is chosen
  Messages notes;
};

/// Errors: as a FitQuestion's; a step that is not planned (several GPUs, another runtime).
[[nodiscard]] Answered<PlacementAnswer> ask(const PlacementQuestion& question);

/// What the validator finds in a plan's file; `valid` on paper.
struct PlanCheck {
  std::string name, detail;
  bool passed = false;
};
struct PlanProofAnswer {
  bool valid = false;
  std::vector<PlanCheck> checks;
};
/// `file`: its path. Errors: it cannot be read, or is no plan.
[[nodiscard]] Answered<PlanProofAnswer> recount_plan(const std::string& file);

}  // namespace stowage
