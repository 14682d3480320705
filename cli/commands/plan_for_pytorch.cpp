#include "cli/commands/plan_for_pytorch.hpp"

#include <optional>
#include <string>
#include <utility>

#include "answers/planning/pytorch_plan.hpp"
#include "answers/report/plan_pages.hpp"
#include "cli/options/planned_question.hpp"
#include "cli/output/output_file.hpp"
#include "cli/output/progress.hpp"
#include "cli/output/signals.hpp"
#include "cli/report/page_file.hpp"
#include "cli/report/picture_json.hpp"
#include "cli/report/pytorch_plan_answer.hpp"
#include "planner/pytorch/pytorch_plan_file.hpp"

namespace stowage {

namespace {

/// The page about the plans, where one is asked for.
Result<void> write_pytorch_page(const PlanningRequest& request, const PytorchAnswer& found,
                                RenderedAnswer& shown) {
  if (request.page.empty()) return {};
  if (found.proposals.empty()) {
    return write_page(request.page, page_without_plan(found.request, shown), shown);
  }
  const auto page = pytorch_plan_page(request.question, found);
  if (!page) return tl::unexpected(page.error());
  return write_page(request.page, page_of(*page, found, shown), shown);
}

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

namespace {

/// Writes the chosen plan, where it is asked for.
Result<void> write_chosen_for_pytorch(const PlanningRequest& request, const PytorchAnswer& found,
                                      std::optional<OutputFile>& file, RenderedAnswer& shown) {
  if (!found.chosen || request.output.empty()) return {};
  const PytorchProposal& chosen = found.proposals[*found.chosen];
  PytorchPlan plan = chosen.plan;
  plan.question = asked_question(request.typed, request.output);
  const std::string text = write_pytorch_plan(plan);
  if (request.output == "-") {
    shown.report.raw = text;
    return {};
  }
  if (auto written = file->commit(text); !written) return written;
  shown.report.json.emplace_back("written", request.output);
  shown.report.say("'" + chosen.name + "' is written to " + request.output, Tone::good);
  add_ways_out(plan, request.output, shown.report);
  return {};
}

}  // namespace

// Opens the files, plans, and writes what was chosen: the plan first, then the page.
Result<RenderedAnswer> run_pytorch_planning(const PlanningRequest& request) {
  Progress progress("planning for PyTorch");
  if (auto writable = check_page_file(request.page, request.output); !writable) {
    return tl::unexpected(std::move(writable.error()));
  }
  auto file = open_output(request.output);
  if (!file) return tl::unexpected(std::move(file.error()));
  const auto found = planned_for_pytorch(request, progress);
  if (!found) return tl::unexpected(found.error());
  RenderedAnswer shown = rendered(*found, request.typed);
  if (auto written = write_chosen_for_pytorch(request, *found, *file, shown); !written) {
    return tl::unexpected(std::move(written.error()));
  }
  file->reset();  // one is open at a time
  if (auto written = write_pytorch_page(request, *found, shown); !written) {
    return tl::unexpected(std::move(written.error()));
  }
  return shown;
}

}  // namespace stowage
