#include "answers/planning/recounted_plan.hpp"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "answers/planning/prepare_plan.hpp"
#include "answers/subject/workspaces.hpp"
#include "planner/problem/rates.hpp"
#include "planner/pytorch/hooked_step.hpp"
#include "planner/validate_pytorch/recount.hpp"

namespace stowage {

namespace {

StepRates rates_of(const PlanRequest& request) {
  const auto rates =
      std::make_shared<const Rates>(make_rates(request.card, request.host, request.measured.get()));
  return {.gpu = [rates](const SizedStep& step,
                         NodeId node) { return gpu_seconds(*rates, step, node); },
          .cpu = [rates](const SizedStep& step,
                         NodeId node) { return cpu_seconds(*rates, step, node); },
          .to_host = [rates](Bytes bytes) { return d2h_seconds(*rates, bytes); },
          .from_host = [rates](Bytes bytes) { return h2d_seconds(*rates, bytes); },
          .hook = hook_seconds,
          .update_hook = update_hook_seconds};
}

}  // namespace

Result<std::vector<Check>> recounted(const PytorchPlanQuestion& question) {
  auto prepared = prepare_plan(question.made_of);
  if (!prepared) {
    return tl::unexpected(about_plan(std::move(prepared.error()), question.named));
  }
  const PlanRequest& request = prepared->request;
  if (const auto unknown = unknown_to_recount(question.named.plan, request.document.modules)) {
    return failure(
        fmt::format("{}: the recount does not know {}", question.named.source->name, *unknown),
        "stowage.rehearse and stowage.verify hold it to its step (docs/apply.md)");
  }
  const Workspaces workspaces =
      Workspaces::as_asked(question.made_of.step, request.card, prepared->process.runtime);
  const StepOfPlan step{.document = request.document,
                        .batch = request.batch.samples,
                        .card = request.card,
                        .process = prepared->process,
                        .rates = rates_of(request)};
  return recount_pytorch_plan(question.named.plan, question.named.source, step, workspaces.source())
      .checks;
}

}  // namespace stowage
