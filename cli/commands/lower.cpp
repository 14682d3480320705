#include <optional>

#include "cli/commands/commands.hpp"
#include "cli/output/output_file.hpp"
#include "estimator/document/readable_step.hpp"

namespace stowage {

Result<RenderedAnswer> run_lower(const LowerRequest& request) {
  auto file = open_output(request.output);
  if (!file) return tl::unexpected(std::move(file.error()));
  auto found = answer(request.question);
  if (!found) return tl::unexpected(std::move(found.error()));
  RenderedAnswer shown{.report = {.notes = std::move(found->notes)}};
  const auto text = write_readable_step(found->document);
  if (!text) return tl::unexpected(text.error());
  if (auto written = put_out(*text, *file, shown.report); !written) {
    return tl::unexpected(std::move(written.error()));
  }
  return shown;
}

}  // namespace stowage
