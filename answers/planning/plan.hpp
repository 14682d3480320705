// What to keep on the CPU's side of PCIe so that a step fits and is fastest: plans for one step on
// one card, each checked by the validator.
//
//   PlanQuestion -> PreparedPlan (prepare_plan.hpp) -> plans, proofs, the chosen one -> PlanAnswer
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "answers/planning/plan_question.hpp"
#include "answers/planning/prepare_plan.hpp"
#include "answers/planning/what_would_do.hpp"
#include "answers/subject/workspaces.hpp"
#include "gpu_probe/run/validate_run.hpp"
#include "planner/plan/plan.hpp"
#include "planner/propose/frontier.hpp"
#include "planner/propose/served_plans.hpp"

namespace stowage {

enum class Proof { not_run, passed, failed };

/// What has been shown of a plan: on paper, by running it on the host, by running it on a GPU.
struct PlanProof {
  Proof model = Proof::not_run;
  Proof host = Proof::not_run;
  Proof cuda = Proof::not_run;
};

/// What the kernels of a plan's step take with everything on the GPU.
struct AnyOrderPeak {
  Bytes in_order;        ///< in the step's order
  Bytes at_most_in_any;  ///< in any order that their data allow
};

struct PlanAnswer {
  PlanRequest request;  ///< what the question means: the step, the card, the host, the budget
  /// At least one, unless `why_none` says why there is none, or it was interrupted before.
  std::vector<Plan> plans;
  std::vector<PlanProof> proofs;          ///< by plan
  std::optional<std::size_t> chosen;      ///< none: no plan may be taken unasked
  std::optional<AnyOrderPeak> any_order;  ///< of the first plan
  std::optional<ServedStep> serving;      ///< of a question about it: the step is a round of it
  std::optional<DecodePlan> decode;       ///< of serving, where part of it has a home on the GPU
  Diagnostics why_none;                   ///< the operation that breaks the budget, with its items
  std::optional<LeastMemory> least_memory;           ///< that would do, where no plan is chosen
  std::optional<LeastHostMemory> least_host_memory;  ///< as above, where the host is too small
  bool was_interrupted = false;                  ///< these are the best plans so far, maybe none
  bool ran_out_of_time = false;                  ///< likewise, by the question's limit in seconds
  SearchOutcome search;                          ///< of the plans
  bool took_all_gpu = false;                     ///< chosen since everything fits, not for its time
  std::shared_ptr<const Workspaces> workspaces;  ///< for questions that follow this one
  Diagnostics notes;

  /// Whether a plan is chosen and no check of it failed.
  [[nodiscard]] bool has_valid_plan() const;
};

enum class PlanStage {
  improving,       ///< there is a plan to end with
  checking,        ///< every plan, on paper
  running_on_host  ///< the chosen plan
};

/// Whoever waits for plans: told how far it is, asked whether to go on.
struct PlanWatch {
  std::function<void(PlanStage)> reached = {};
  /// Polled; once true, the search ends with the plans that there are.
  std::function<bool()> is_cancelled = {};
};

/// Errors: what the question names cannot be read or does not go together; pins that do not apply;
/// a choice that names no plan. That no plan keeps within the budget is an answer.
[[nodiscard]] Result<PlanAnswer> answer(const PlanQuestion& question, const PlanWatch& watch = {});

/// The step's time over budgets, no longer than that of the answer's plans that may be taken
/// unasked. It is searched for with as much effort and time as the plans were. Errors: as
/// frontier's.
[[nodiscard]] Result<Frontier> frontier_of(const PlanQuestion& question, const PlanAnswer& answer,
                                           const PlanWatch& watch = {});

}  // namespace stowage
