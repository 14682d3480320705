#include <variant>

#include "cli/commands/commands.hpp"
#include "cli/report/summary_answer.hpp"
#include "cli/report/weights_answer.hpp"

namespace stowage {

Result<RenderedAnswer> run_summary(const SummaryQuestion& question) {
  return answer(question).map([](const SummaryAnswer& found) {
    return std::visit([](const auto& summary) { return rendered(summary); }, found);
  });
}

}  // namespace stowage
