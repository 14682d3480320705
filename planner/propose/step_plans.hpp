// The plans of one step: the plan with the shortest step, the plan of fewest bytes, and their
// bounds.
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
/// Sets the bound on bytes that needs no search: a plan that computes on the GPU alone uploads the
/// inputs.
void set_trivial_pcie_bound(const Planning& planning, const StepCase& of, Plan& plan);

struct PlanSearch {
  Effort effort = Effort::full;
  double share = 0.6;  ///< of the work that is left
  /// A consistent placement to assemble first; null: none. If its plan is as short as the step with
  /// everything on the GPU, no other plan is searched for.
  const Placement* first_candidate = nullptr;
};

/// The plan of least cost, then changed for a short simulated step; complete but for its bound on
/// bytes. Errors: the budget is below the floor; the arena stays above the budget.
/// `name`: the proposal's name, which is reported if the search is cut short.
[[nodiscard]] Result<Plan> cheapest_plan(const Planning& planning, const StepCase& of,
                                         const std::string& name = "cheapest",
                                         const PlanSearch& search = {});

/// A bound on bytes over PCIe and its proof: no plan that computes on the GPU moves less (with
/// updates there too, or on either side).
struct ByteBound {
  Bytes bytes;
  std::optional<TreeProof> proof = {};  ///< none: the bound is 0
};

/// The plan that computes on the GPU and moves the fewest bytes; complete but for its bounds of
/// seconds.
struct FewestBytes {
  Plan plan;
  ByteBound bound;
};
[[nodiscard]] Result<FewestBytes> fewest_bytes(const Planning& planning, const StepCase& of);
/// The min-pcie plan, with the bounds of seconds of `cheapest`.
[[nodiscard]] Plan min_pcie_plan(FewestBytes fewest, const Plan& cheapest);

/// The all-gpu plan: `all_gpu` as assemble_all_gpu left it, with the bounds of seconds of
/// `cheapest`.
[[nodiscard]] Plan all_gpu_plan(const Planning& planning, const StepCase& of, Plan all_gpu,
                                const Plan& cheapest);

/// Sets the bound on bytes. `on_gpu_bound`: the bound of plans that compute on the GPU alone, if
/// known; else it is solved for.
void set_pcie_bound(const Planning& planning, const StepCase& of, Plan& plan,
                    const std::optional<ByteBound>& on_gpu_bound = std::nullopt);

}  // namespace stowage
