#include <fmt/format.h>

#include <stowage/placement.hpp>
#include <utility>

#include "answers/library/messages.hpp"
#include "answers/library/questions.hpp"
#include "answers/planning/plan.hpp"
#include "answers/planning/validate.hpp"
#include "answers/question/question_error.hpp"
#include "answers/question/version.hpp"
#include "planner/explain/plan_words.hpp"
#include "planner/plan/plan_file.hpp"

namespace stowage {

namespace {

Result<PlanQuestion> plan_question(const PlacementQuestion& question) {
  if (auto mistake = out_of_range("batch", question.batch)) return failure(*std::move(mistake));
  for (const auto& [field, bytes] : {std::pair("budget", question.budget_bytes),
                                     std::pair("host_memory", question.host_memory_bytes)}) {
    if (auto mistake = below_zero(field, bytes)) return failure(*std::move(mistake));
  }
  constexpr double least_seconds = 0.01, most_seconds = 86400;
  if (question.time_limit_seconds && !(*question.time_limit_seconds >= least_seconds &&
                                       *question.time_limit_seconds <= most_seconds)) {
    return failure(question_error(
        fmt::format("`time_limit` takes {} to {} seconds", least_seconds, most_seconds)));
  }
  constexpr int most_effort = 1024;
  if (question.effort < 1 || question.effort > most_effort) {
    return failure(question_error(fmt::format("`effort` takes 1 to {}", most_effort)));
  }
  auto step = step_question(question.step, executed_runtime);
  if (!step) return tl::unexpected(std::move(step.error()));
  auto card = card_question(question.gpu, step->model.configs);
  if (!card) return tl::unexpected(std::move(card.error()));
  PlanQuestion asked{.step = *std::move(step),
                     .card = *std::move(card),
                     .choice = question.choose,
                     .effort = question.effort,
                     .time_limit_seconds = question.time_limit_seconds,
                     .stowage_version = std::string(program_version)};
  if (question.batch) asked.batch = WholeBatch(*question.batch);
  if (question.budget_bytes) asked.budget = Bytes(*question.budget_bytes);
  if (question.host_memory_bytes) asked.host_memory = Bytes(*question.host_memory_bytes);
  return asked;
}

PlacementPlan placement_plan(const Plan& plan) {
  const PlanTotals& totals = plan.totals;
  return {.name = plan.name,
          .step_seconds = totals.step_seconds,
          .step_lower_bound_seconds = totals.step_lower_bound_seconds,
          .arena_bytes = totals.arena.count(),
          .host_bytes = totals.host_peak.count(),
          .pageable_bytes = totals.pageable_peak.count(),
          .to_gpu_bytes = totals.h2d.count(),
          .from_gpu_bytes = totals.d2h.count(),
          .pcie_lower_bound_bytes = totals.pcie_lower_bound.count(),
          .changes_training = changes_training(plan),
          .in_words = plan_in_words(plan)};
}

}  // namespace

Answered<PlacementAnswer> ask(const PlacementQuestion& question) {
  const auto asked = plan_question(question);
  if (!asked) return refused(asked.error());
  const auto found = answer(*asked);
  if (!found) return refused(found.error());
  PlacementAnswer placement{.chosen = found->chosen,
                            .budget_bytes = found->request.budget.bytes.count(),
                            .notes = messages_of(found->notes)};
  for (const Plan& plan : found->plans) placement.plans.push_back(placement_plan(plan));
  if (found->chosen) {
    auto file = write_readable_plan(found->plans[*found->chosen]);
    if (!file) return refused(file.error());
    placement.file = *std::move(file);
  }
  if (!found->why_none.empty()) placement.why_none = found->why_none.front().message;
  if (found->least_memory) placement.least_arena_bytes = found->least_memory->arena.count();
  return placement;
}

Answered<PlanProofAnswer> recount_plan(const std::string& file) {
  const auto found = answer(ValidateQuestion{.plans = {file}, .run = false});
  if (!found) return refused(found.error());
  const PlanFindings& findings = found->plans.front();
  PlanProofAnswer proof{.valid = findings.passed()};
  for (const auto& [where, check] : findings.checks) {
    proof.checks.push_back({check.name, check.detail, check.passed});
  }
  return proof;
}

}  // namespace stowage
