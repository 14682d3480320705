// Placements by simple rules, as people swap by hand and as papers did before there was a bound.
//
// A plan should be beaten by none of them, so they are tried beside what the solver finds, and
// bench/planning measures plans against each.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "estimator/memory/sized_step.hpp"
#include "planner/problem/gpu_budget.hpp"
#include "planner/problem/residency_problem.hpp"

namespace stowage {

enum class SwapPolicy : std::uint8_t {
  swap_all,           ///< every activation from forward to backward (vDNN-all)
  swap_convolutions,  ///< what convolutions read (vDNN-conv)
  as_needed,          ///< the same in that order while a step exceeds the budget (vDNN-dyn)
  largest_first,      ///< the largest first, while a step exceeds the budget
  earliest_first,     ///< the first made first, while a step exceeds the budget
  optimizer_on_cpu,   ///< all updates with their state (ZeRO-Offload), then earliest_first
};
inline constexpr std::array<SwapPolicy, 6> swap_policies{
    SwapPolicy::swap_all,      SwapPolicy::swap_convolutions, SwapPolicy::as_needed,
    SwapPolicy::largest_first, SwapPolicy::earliest_first,    SwapPolicy::optimizer_on_cpu};
[[nodiscard]] std::string_view to_string(SwapPolicy policy);

/// The placement by a rule. None: the rule leaves more than the budget at some step, or pins forbid
/// it. `problem` is make_problem's of `step`. O(gaps * (log + steps inside)).
[[nodiscard]] std::optional<Placement> placed_by(SwapPolicy policy, const SizedStep& step,
                                                 const ResidencyProblem& problem, GpuBudget budget);

}  // namespace stowage
