#include "cli/commands/commands.hpp"
#include "cli/output/output_file.hpp"

namespace stowage {

Result<RenderedAnswer> run_export(const ExportRequest& request) {
  auto file = open_output(request.output);
  if (!file) return tl::unexpected(std::move(file.error()));
  auto text = answer(request.question);
  if (!text) return tl::unexpected(std::move(text.error()));
  RenderedAnswer shown;
  if (auto written = put_out(*std::move(text), *file, shown.report); !written) {
    return tl::unexpected(std::move(written.error()));
  }
  return shown;
}

}  // namespace stowage
