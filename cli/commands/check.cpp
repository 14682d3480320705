#include <variant>

#include "cli/commands/commands.hpp"
#include "cli/output/progress.hpp"
#include "cli/report/check_answer.hpp"
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

}  // namespace

Result<RenderedAnswer> run_check(const CheckRequest& request) {
  return std::visit(
      [&](const auto& question) -> Result<RenderedAnswer> {
        const Progress progress(check_stage(question));
        return answer(question).map([&](const auto& found) { return shown(found, request); });
      },
      request.question);
}

}  // namespace stowage
