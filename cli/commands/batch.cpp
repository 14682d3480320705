#include <fmt/format.h>

#include <string>
#include <variant>

#include "cli/commands/commands.hpp"
#include "cli/output/progress.hpp"
#include "cli/report/batch_answer.hpp"
#include "cli/report/table_answer.hpp"

namespace stowage {

namespace {

std::string batch_stage(const BatchQuestion&) { return "searching for the largest batch"; }
std::string batch_stage(const LargestValueQuestion& question) {
  return fmt::format("searching for the largest {}", searched_quantity(question.of).noun);
}
std::string batch_stage(const TableQuestion&) { return "comparing"; }

}  // namespace

Result<RenderedAnswer> run_batch(const BatchRequest& request) {
  return std::visit(
      [](const auto& question) -> Result<RenderedAnswer> {
        const Progress progress(batch_stage(question));
        return answer(question).map([](const auto& found) { return rendered(found); });
      },
      request.question);
}

}  // namespace stowage
