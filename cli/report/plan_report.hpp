// How plans and their proofs are told.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options/command.hpp"
#include "gpu_probe/run/validate_run.hpp"
#include "planner/plan/plan.hpp"
#include "planner/propose/proposals.hpp"

namespace stowage {

enum class Proof { not_run, passed, failed };
[[nodiscard]] std::string_view to_string(Proof proof);

/// What has been shown of a plan: on paper, by running it on the host, by running it on a GPU.
struct PlanProof {
  Proof model = Proof::not_run;
  Proof host = Proof::not_run;
  Proof cuda = Proof::not_run;
};

/// Its own remarks say so.
[[nodiscard]] bool changes_training(const Plan& plan);
/// Why the plan is not taken unless it is asked for: it changes the training, or wants more memory
/// than the host allows. "" where nothing speaks against it.
[[nodiscard]] std::string why_not_taken(const Plan& plan, const Host& host);

/// The proposals side by side; `chosen` is the one that is written, none where none may be
/// taken unasked.
[[nodiscard]] Answer plan_answer(const PlanRequest& request, const std::vector<Plan>& plans,
                                 const std::vector<PlanProof>& proofs,
                                 std::optional<std::size_t> chosen);

/// Errors: as run_plan's; the host kernels do not load.
[[nodiscard]] Result<RunReport> run_on_host(const Plan& plan);

}  // namespace stowage
