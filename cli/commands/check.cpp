#include <utility>
#include <variant>

#include "answers/report/sizing_pages.hpp"
#include "cli/commands/commands.hpp"
#include "cli/output/progress.hpp"
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

RenderedAnswer shown(const CheckAnswer& found, const CheckRequest& request) {
  return rendered(found, request.typed, request.verbose);
}
RenderedAnswer shown(const ServingAnswer& found, const CheckRequest& request) {
  return rendered(found, request.verbose);
}
RenderedAnswer shown(const TableAnswer& found, const CheckRequest&) { return rendered(found); }

/// The answer, and a page of it in a file.
Result<RenderedAnswer> checked_with_page(const CheckQuestion& question,
                                         const CheckRequest& request) {
  if (auto writable = check_page_file(request.page); !writable) {
    return tl::unexpected(std::move(writable.error()));
  }
  const Progress progress(check_stage(question));
  const auto page = check_page(question);
  if (!page) return tl::unexpected(page.error());
  RenderedAnswer answer = shown(page->answer, request);
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
        return answer(question).map([&](const auto& found) { return shown(found, request); });
      },
      request.question);
}

}  // namespace stowage
