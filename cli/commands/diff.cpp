#include "cli/commands/commands.hpp"
#include "cli/report/diff_answer.hpp"

namespace stowage {

Result<RenderedAnswer> run_diff(const DiffRequest& request) {
  return answer(request.question).map([&](const DiffAnswer& found) {
    return rendered(found, request.question, request.verbose);
  });
}

}  // namespace stowage
