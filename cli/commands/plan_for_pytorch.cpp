#include "cli/commands/plan_for_pytorch.hpp"

#include <optional>
#include <string>
#include <utility>

#include "answers/planning/pytorch_plan.hpp"
#include "cli/options/planned_question.hpp"
#include "cli/output/output_file.hpp"
#include "cli/output/progress.hpp"
#include "cli/output/signals.hpp"
#include "cli/report/pytorch_plan_answer.hpp"
#include "planner/pytorch/pytorch_plan_file.hpp"

namespace stowage {

namespace {

/// The plans, while the user sees how far it is and may interrupt.
Result<PytorchAnswer> planned_for_pytorch(const PlanningRequest& request, Progress& progress) {
  const StoppableSearch search;
  const auto reached = [&](PlanStage) {
    search.has_result();
    progress.now("searching for better plans (Ctrl-C takes the best so far)");
  };
  return answer_for_pytorch(request.question, {.reached = reached, .is_cancelled = interrupted});
}

}  // namespace

Result<RenderedAnswer> run_pytorch_planning(const PlanningRequest& request) {
  Progress progress("planning for PyTorch");
  auto file = open_output(request.output);
  if (!file) return tl::unexpected(std::move(file.error()));
  const auto found = planned_for_pytorch(request, progress);
  if (!found) return tl::unexpected(found.error());
  RenderedAnswer shown = rendered(*found, request.typed);
  if (!found->chosen || request.output.empty()) return shown;
  const PytorchProposal& chosen = found->proposals[*found->chosen];
  PytorchPlan plan = chosen.plan;
  plan.question = asked_question(request.typed, request.output);
  const std::string text = write_pytorch_plan(plan);
  if (request.output == "-") {
    shown.report.raw = text;
    return shown;
  }
  if (auto written = (*file)->commit(text); !written) {
    return tl::unexpected(std::move(written.error()));
  }
  shown.report.json.emplace_back("written", request.output);
  shown.report.say("'" + chosen.name + "' is written to " + request.output, Tone::good);
  add_ways_out(plan, request.output, shown.report);
  return shown;
}

}  // namespace stowage
