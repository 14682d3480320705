#include "cli/commands/plan_for_pytorch.hpp"

#include <optional>
#include <string>
#include <utility>

#include "answers/planning/pytorch_plan.hpp"
#include "cli/output/output_file.hpp"
#include "cli/output/progress.hpp"
#include "cli/output/signals.hpp"
#include "cli/report/pytorch_plan_answer.hpp"
#include "planner/pytorch/pytorch_plan_file.hpp"

namespace stowage {

Result<RenderedAnswer> run_pytorch_planning(const PlanningRequest& request) {
  Progress progress("planning for PyTorch");
  auto file = open_output(request.output);
  if (!file) return tl::unexpected(std::move(file.error()));
  auto found = [&] {
    const StoppableSearch search;
    return answer_for_pytorch(request.question, {.is_cancelled = interrupted});
  }();
  if (!found) return tl::unexpected(std::move(found.error()));
  RenderedAnswer shown = rendered(*found);
  if (!found->chosen) return shown;
  const PytorchProposal& chosen = found->proposals[*found->chosen];
  if (request.output.empty()) return shown;
  const std::string text = write_pytorch_plan(chosen.plan);
  if (request.output == "-") {
    shown.report.raw = text;
    return shown;
  }
  if (auto written = (*file)->commit(text); !written) {
    return tl::unexpected(std::move(written.error()));
  }
  shown.report.json.emplace_back("written", request.output);
  shown.report.say("'" + chosen.name + "' is written to " + request.output, Tone::good);
  add_ways_out(chosen.plan, request.output, shown.report);
  return shown;
}

}  // namespace stowage
