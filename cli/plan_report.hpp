// How plans and their proofs are told.
#pragma once

#include <optional>
#include <vector>

#include "cli/command.hpp"
#include "gpu_probe/validate_run.hpp"
#include "planner/plan.hpp"
#include "planner/proposals.hpp"

namespace stowage {

enum class Proof { not_run, passed, failed };
[[nodiscard]] std::string_view to_string(Proof proof);

/// What has been shown of a plan: on paper, by running it on the host, by running it on a GPU.
struct PlanProof {
  Proof model = Proof::not_run;
  Proof host = Proof::not_run;
  Proof cuda = Proof::not_run;
};

/// Its own remarks say so: other batch statistics, for one. Never taken unless it is asked for.
[[nodiscard]] bool changes_training(const Plan& plan);

/// The proposals side by side; `chosen` is the one that is written, none where all of them change
/// the training.
[[nodiscard]] Answer plan_answer(const PlanRequest& request, const std::vector<Plan>& plans,
                                 const std::vector<PlanProof>& proofs,
                                 std::optional<std::size_t> chosen);

/// Errors: as run_plan's; the host kernels do not load.
[[nodiscard]] Result<RunReport> run_on_host(const Plan& plan);

}  // namespace stowage
