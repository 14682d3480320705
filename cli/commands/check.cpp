#include <unistd.h>

#include <optional>
#include <variant>

#include "cli/commands/commands.hpp"
#include "cli/output/progress.hpp"
#include "cli/output/terminal.hpp"
#include "cli/report/check_answer.hpp"
#include "cli/report/serving_answer.hpp"
#include "cli/report/table_answer.hpp"

namespace stowage {

namespace {

const char* check_stage(const CheckQuestion&) { return "sizing the step"; }
const char* check_stage(const ServingQuestion&) { return "sizing prefill and decode"; }
const char* check_stage(const TableQuestion&) { return "comparing"; }

/// With memory over the step where stdout is a terminal, which shows it as a chart.
Result<RenderedAnswer> shown_answer(const CheckQuestion& question, const CheckRequest& request) {
  const auto setup = set_up_check(question);
  if (!setup) return tl::unexpected(setup.error());
  const auto found = answer(question, *setup);
  if (!found) return tl::unexpected(found.error());
  std::optional<MemoryOverStep> memory;
  if (is_terminal(STDOUT_FILENO)) {
    const auto step = setup->at_batch(found->batch);
    if (!step) return tl::unexpected(step.error());
    memory = memory_over_step(*step, found->card, found->settings, found->training.run);
  }
  return rendered(*found, request.typed, request.verbose, memory ? &*memory : nullptr);
}
Result<RenderedAnswer> shown_answer(const ServingQuestion& question, const CheckRequest& request) {
  return answer(question).map(
      [&](const ServingAnswer& found) { return rendered(found, request.verbose); });
}
Result<RenderedAnswer> shown_answer(const TableQuestion& question, const CheckRequest&) {
  return answer(question).map([](const TableAnswer& found) { return rendered(found); });
}

}  // namespace

Result<RenderedAnswer> run_check(const CheckRequest& request) {
  return std::visit(
      [&](const auto& question) -> Result<RenderedAnswer> {
        const Progress progress(check_stage(question));
        return shown_answer(question, request);
      },
      request.question);
}

}  // namespace stowage
