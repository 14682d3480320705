// The plans of one step: the one with the shortest step, the one of fewest bytes, and what bounds
// them.
#pragma once

#include <optional>
#include <string>

#include "planner/propose/step_case.hpp"

namespace stowage {

enum class Effort : std::uint8_t {
  quick,  ///< no branching, few variations
  full,
};

[[nodiscard]] Bytes pcie_bytes(const Plan& plan);
[[nodiscard]] bool computes_on_cpu(const Plan& plan);
/// Sets what needs no search to be known: whoever computes on the GPU alone uploads the inputs.
void set_trivial_pcie_bound(const Planning& planning, const StepCase& of, Plan& plan);

struct PlanSearch {
  Effort effort = Effort::full;
  double share = 0.6;  ///< of the time that is left, about
  /// Looked at first: consistent; where its plan is as short as the step with everything on the
  /// GPU, no other is looked for. Null: none.
  const Placement* promising = nullptr;
};

/// The plan of least cost, made to have a short simulated step; complete but for its bound on
/// bytes. Errors: the budget is below the floor; the arena stays above it.
[[nodiscard]] Result<Plan> cheapest_plan(const Planning& planning, const StepCase& of,
                                         const PlanSearch& search = {});

/// No plan that computes on the GPU (updates too, or where they like) moves less, and why.
struct ByteBound {
  Bytes bytes;
  std::optional<TreeProof> proof = {};  ///< none: the bound is 0
};

/// Everything computed on the GPU, fewest bytes; complete but for its bounds of seconds.
struct FewestBytes {
  Plan plan;
  ByteBound bound;
};
[[nodiscard]] Result<FewestBytes> fewest_bytes(const Planning& planning, const StepCase& of);
/// With the bounds that `cheapest` has.
[[nodiscard]] Plan min_pcie_plan(FewestBytes fewest, const Plan& cheapest);

/// `all_gpu`, as assemble_all_gpu left it, with the bounds that `cheapest` has.
[[nodiscard]] Plan all_gpu_plan(const Planning& planning, const StepCase& of, Plan all_gpu,
                                const Plan& cheapest);

/// `on_gpu_bound`, if known, is of plans that compute on the GPU alone; else it is solved for.
void set_pcie_bound(const Planning& planning, const StepCase& of, Plan& plan,
                    const std::optional<ByteBound>& on_gpu_bound = std::nullopt);

}  // namespace stowage
