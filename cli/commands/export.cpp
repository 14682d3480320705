#include <utility>

#include "cli/commands/commands.hpp"
#include "cli/output/output_file.hpp"
#include "cli/output/progress.hpp"
#include "cli/report/export_answer.hpp"

namespace stowage {

Result<RenderedAnswer> run_export(const ExportRequest& request) {
  auto file = open_output(request.output);
  if (!file) return tl::unexpected(std::move(file.error()));
  const Progress progress("sizing the step");
  const auto found = answer(request.question);
  if (!found) return tl::unexpected(found.error());
  const bool is_written = file->has_value();
  RenderedAnswer shown = rendered(*found, is_written);
  const bool shows_json = request.format == Format::json;
  if (is_written || !shows_json) {
    if (auto written = put_out(exported_text(*found), *file, shown.report); !written) {
      return tl::unexpected(std::move(written.error()));
    }
  }
  return shown;
}

}  // namespace stowage
