#include <fmt/format.h>

#include <string>
#include <utility>
#include <variant>

#include "answers/report/sizing_pages.hpp"
#include "cli/commands/commands.hpp"
#include "cli/output/progress.hpp"
#include "cli/report/batch_answer.hpp"
#include "cli/report/page_file.hpp"
#include "cli/report/picture_json.hpp"
#include "cli/report/table_answer.hpp"

namespace stowage {

namespace {

std::string batch_stage(const BatchQuestion&) { return "searching for the largest batch"; }
std::string batch_stage(const LargestValueQuestion& question) {
  return fmt::format("searching for the largest {}", searched_quantity(question.of).noun);
}
std::string batch_stage(const TableQuestion&) { return "comparing"; }

/// The answer, and a page of it in a file.
Result<RenderedAnswer> searched_with_page(const BatchQuestion& question, const std::string& path) {
  if (auto writable = check_page_file(path); !writable) {
    return tl::unexpected(std::move(writable.error()));
  }
  const Progress progress(batch_stage(question));
  const auto page = batch_page(question);
  if (!page) return tl::unexpected(page.error());
  RenderedAnswer answer = rendered(page->answer);
  if (auto written = write_page(path, page_of(*page, answer), answer); !written) {
    return tl::unexpected(std::move(written.error()));
  }
  return answer;
}

}  // namespace

Result<RenderedAnswer> run_batch(const BatchRequest& request) {
  if (!request.page.empty()) {
    return searched_with_page(std::get<BatchQuestion>(request.question), request.page);
  }
  return std::visit(
      [](const auto& question) -> Result<RenderedAnswer> {
        const Progress progress(batch_stage(question));
        return answer(question).map([](const auto& found) { return rendered(found); });
      },
      request.question);
}

}  // namespace stowage
