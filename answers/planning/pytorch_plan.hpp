// What eager PyTorch can do itself so that a step fits a card: plans that `stowage.apply` carries
// out, each simulated with PyTorch's allocator.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "answers/planning/plan.hpp"
#include "answers/planning/plan_question.hpp"
#include "planner/pytorch/pytorch_plans.hpp"

namespace stowage {

/// The best plan that may also run kernels on the CPU and lay out memory itself, which PyTorch
/// cannot be made to do. Of the same kernels.
struct WithEveryMeans {
  double step_seconds = 0;
  Bytes arena;
};

/// A card that one of the proposals fits, where none fits the one that was asked for. Not the
/// smallest such: what was missing is added until it does.
struct EnoughMemory {
  Bytes card_total;
  std::string plan;  ///< "offload"
};

struct PytorchAnswer {
  PlanRequest request;                        ///< the step, the card, the host
  CheckSettings process;                      ///< of PyTorch's, without a plan
  std::vector<PytorchProposal> proposals;     ///< the shortest step first
  std::optional<std::size_t> chosen;          ///< none: no proposal may be taken unasked
  std::optional<WithEveryMeans> every_means;  ///< none: nothing is to be done, or there is none
  Diagnostics why_none;
  std::optional<EnoughMemory> enough;  ///< none: there are proposals, or no such card was found
  bool was_interrupted = false;
  Diagnostics notes;
};

/// Of the question's means and budgets none is looked at: the means are PyTorch's, the budget is
/// the card's. Precondition: question.card. Errors: what the question names cannot be read or does
/// not go together; a choice that names no plan; a step that is not PyTorch's. That nothing fits is
/// an answer. `watch` is told once there is a first proposal.
[[nodiscard]] Result<PytorchAnswer> answer_for_pytorch(const PlanQuestion& question,
                                                       const PlanWatch& watch = {});

}  // namespace stowage
