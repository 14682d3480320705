#include "cli/commands/commands.hpp"
#include "cli/report/explain_answer.hpp"

namespace stowage {

Result<RenderedAnswer> run_explain(const ExplainQuestion& question) {
  return answer(question).map([](const ExplainAnswer& found) { return rendered(found); });
}

}  // namespace stowage
