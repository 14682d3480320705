// What validate_plan is made of: one function an idea, each giving its named checks.
//
// Every function but check_structure takes what check_structure passed: ids and ranges within the
// tables, no negative size, and names, bytes and counts equal to the lowered step's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimator/memory/sized_step.hpp"
#include "planner/validate/validate_plan.hpp"

namespace stowage {

/// What is wrong under one name: all of it counted, the first few put into words.
struct Violations {
  static constexpr std::size_t worded = 4;
  std::int64_t count = 0;
  std::vector<std::string> first;

  /// `wording()` is only called for the first few.
  template <typename Wording>
  void note(const Wording& wording) {
    ++count;
    if (first.size() < worded) first.push_back(wording());
  }
};

/// Passed without violations, and then says what was counted.
[[nodiscard]] Check verdict(std::string name, const Violations& violations, std::string counted);

/// "'conv1.forward' (step 4)"; of the end "the step's end".
[[nodiscard]] std::string step_label(const Plan& plan, std::int32_t step);
[[nodiscard]] std::string storage_label(const Plan& plan, StorageId storage);

/// The plan alone: enumerators, ids, ranges, orders, sizes. Nothing else may be asked of a plan
/// that fails it.
[[nodiscard]] Check check_structure(const Plan& plan);

/// The embedded description, loaded, lowered and sized again.
struct LoweredAgain {
  Check description;
  std::optional<SizedStep> step;  ///< none: the check failed
};
[[nodiscard]] LoweredAgain lower_again(const Plan& plan, WorkspaceSource& workspaces);

/// "nodes", "storages", "step hash".
[[nodiscard]] std::vector<Check> compare_with_step(const Plan& plan, const SizedStep& step);
/// "workspaces", or "workspaces not compared" where the plan's come from another source.
[[nodiscard]] Check check_workspaces(const Plan& plan, const SizedStep& step);
/// No node on the CPU that the plan pins to the GPU.
[[nodiscard]] Check check_devices(const Plan& plan, const StepGraph& graph);
/// The walk: "inputs present", "outputs placed", "temporaries placed", "transfers placed",
/// "copies current", "steady state".
[[nodiscard]] std::vector<Check> check_presence(const Plan& plan, const StepGraph& graph);
/// "GPU arena", "host arena", "GPU peak", "arena bound", "budget".
[[nodiscard]] std::vector<Check> check_memory(const Plan& plan);
/// "transferred bytes", "transfer bound", "cost", "cost bound", "step time".
[[nodiscard]] std::vector<Check> check_totals(const Plan& plan, const SizedStep& step);

/// All checks that need the step, in order. Stops after compare_with_step where that fails.
[[nodiscard]] std::vector<Check> check_against_step(const Plan& plan, const SizedStep& step);

}  // namespace stowage
