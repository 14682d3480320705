#include <variant>

#include "cli/commands/commands.hpp"
#include "cli/output/progress.hpp"
#include "cli/report/check_diff_answer.hpp"
#include "cli/report/diff_answer.hpp"

namespace stowage {

namespace {

Result<RenderedAnswer> shown(const DiffQuestion& question, bool verbose) {
  return answer(question).map(
      [&](const DiffAnswer& found) { return rendered(found, question, verbose); });
}

Result<RenderedAnswer> shown(const CheckDiffQuestion& question, bool verbose) {
  const Progress progress("sizing both steps");
  return answer(question).map(
      [&](const CheckDiffAnswer& found) { return rendered(found, verbose); });
}

}  // namespace

Result<RenderedAnswer> run_diff(const DiffRequest& request) {
  return std::visit([&](const auto& question) { return shown(question, request.verbose); },
                    request.question);
}

}  // namespace stowage
