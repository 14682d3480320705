// The checks of validate_plan: one function an idea, each giving its named checks.
//
// Every function but check_structure takes a plan that check_structure passed: a machine of two
// sides, ids and ranges within the tables, no negative size, and tables as long as the step's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimator/memory/sized_step.hpp"
#include "planner/validate/validate_plan.hpp"

namespace stowage {

/// The violations of one check: all of them counted, the first few put into words.
struct Violations {
  static constexpr std::size_t worded = 4;
  std::int64_t count = 0;
  std::vector<std::string> first;

  /// Counts a violation. `wording()` is called only for the first few.
  template <typename Wording>
  void note(const Wording& wording) {
    ++count;
    if (first.size() < worded) first.push_back(wording());
  }
};

/// A check that passes if there are no violations; its detail is then `counted`, else the
/// violations.
[[nodiscard]] Check verdict(std::string name, const Violations& violations, std::string counted);

/// "'conv1.forward' (step 4)"; for the end "the step's end".
[[nodiscard]] std::string step_label(const Plan& plan, std::int32_t step);
[[nodiscard]] std::string storage_label(const Plan& plan, StorageId storage);

/// Whether the step's hash is what the plan says.
[[nodiscard]] Check check_step_hash(const Plan& plan);
/// Whether the description is the one that the plan says; it is not read.
[[nodiscard]] Check check_description_hash(const Plan& plan);
/// Engines and workspaces, without a source of workspaces: only on the GPU, only where a kernel has
/// a choice, and all of cuDNN's of one version.
[[nodiscard]] Check check_engines(const Plan& plan);
/// Engines and workspaces against the answers of a source, by NodeId; empty where the source is not
/// asked.
[[nodiscard]] Check check_workspaces(const Plan& plan, const std::vector<Engines>& answers);
/// No node that the plan pins to the GPU is on the CPU, except nodes of Plan::pins.
[[nodiscard]] Check check_devices(const Plan& plan);
/// The nodes and storages of Plan::pins are where they are pinned to.
[[nodiscard]] Check check_pins(const Plan& plan);
/// Everything that Plan::levers do not move stays where it is.
[[nodiscard]] Check check_levers(const Plan& plan);
/// The walk through the step: "inputs present", "outputs placed", "temporaries placed", "transfers
/// placed", "copies current", "CPU windows", "steady state".
[[nodiscard]] std::vector<Check> check_presence(const Plan& plan);
/// "GPU arena", "host arena", "GPU peak", "arena bound", "budget".
[[nodiscard]] std::vector<Check> check_memory(const Plan& plan);
/// "transferred bytes", "transfer bound", "cost", "cost bound", "step time".
[[nodiscard]] std::vector<Check> check_totals(const Plan& plan);

/// "least workspaces", "cost certificate", "transfer certificate", "step certificate": the bounds,
/// proved again from the certificate. If the first check fails, there are no others.
[[nodiscard]] std::vector<Check> check_certificate(const Plan& plan);

/// All checks but check_workspaces, in order; only check_structure if that fails.
[[nodiscard]] std::vector<Check> check_plan(const Plan& plan);

}  // namespace stowage
