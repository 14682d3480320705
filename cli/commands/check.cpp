#include <unistd.h>

#include <optional>
#include <utility>
#include <variant>

#include "answers/report/sizing_pages.hpp"
#include "cli/commands/commands.hpp"
#include "cli/output/progress.hpp"
#include "cli/output/terminal.hpp"
#include "cli/report/check_answer.hpp"
#include "cli/report/page_file.hpp"
#include "cli/report/picture_json.hpp"
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

/// The answer, and a page of it in a file.
Result<RenderedAnswer> checked_with_page(const CheckQuestion& question,
                                         const CheckRequest& request) {
  if (auto writable = check_page_file(request.page); !writable) {
    return tl::unexpected(std::move(writable.error()));
  }
  const Progress progress(check_stage(question));
  const auto page = check_page(question);
  if (!page) return tl::unexpected(page.error());
  RenderedAnswer answer =
      rendered(page->answer, request.typed, request.verbose, &page->step.memory);
  if (auto written = write_page(request.page, page_of(*page, answer), answer); !written) {
    return tl::unexpected(std::move(written.error()));
  }
  return answer;
}

}  // namespace

Result<RenderedAnswer> run_check(const CheckRequest& request) {
  if (!request.page.empty()) {
    return checked_with_page(std::get<CheckQuestion>(request.question), request);
  }
  return std::visit(
      [&](const auto& question) -> Result<RenderedAnswer> {
        const Progress progress(check_stage(question));
        return shown_answer(question, request);
      },
      request.question);
}

}  // namespace stowage
