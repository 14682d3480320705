#include <filesystem>

#include "cli/commands/commands.hpp"
#include "cli/output/output_file.hpp"
#include "cli/requested/file_kind.hpp"
#include "cli/requested/requested_step.hpp"
#include "estimator/base/read_source.hpp"
#include "estimator/formats/import_model.hpp"
#include "planner/export/dot.hpp"
#include "planner/plan/plan_file.hpp"

namespace stowage {

namespace {

bool is_plan(const SourceText& source) { return stowage_file(source.text) == StowageFile::plan; }

// A plan is a file or stdin, which is read once; anything else is a model.
Result<FoundModel> requested_source(const ModelRequest& request) {
  const std::string& argument = request.source;
  std::error_code ignored;
  if (argument == "-" || std::filesystem::is_regular_file(argument, ignored)) {
    if (argument == "-" ||
        stowage_file(read_file_head(argument).first_bytes) == StowageFile::plan) {
      return read_source(argument, FileKind::plan).map([](SourceTextPtr&& source) {
        return FoundModel{.source = std::move(source)};
      });
    }
  }
  return found_model(request);
}

Result<std::string> drawing(const ExportRequest& request) {
  auto source = requested_source(request.model);
  if (!source) return tl::unexpected(std::move(source.error()));
  if (is_plan(*source->source)) {
    const auto plan = read_plan(std::move(source->source));
    if (!plan) return tl::unexpected(plan.error());
    return export_dot(*plan);
  }
  const auto model = loaded_model(*std::move(source), request.model);
  if (!model) return tl::unexpected(model.error());
  return export_dot(model->graph);
}

}  // namespace

Result<Answer> run_export(const ExportRequest& request) {
  std::optional<OutputFile> file;
  if (!request.output.empty() && request.output != "-") {
    auto opened = OutputFile::open(request.output);
    if (!opened) return tl::unexpected(std::move(opened.error()));
    file.emplace(std::move(*opened));
  }
  auto text = drawing(request);
  if (!text) return tl::unexpected(std::move(text.error()));

  Answer answer;
  if (!file) {
    answer.report.raw = std::move(*text);
    return answer;
  }
  if (auto written = file->commit(*text); !written) {
    return tl::unexpected(std::move(written.error()));
  }
  return answer;
}

}  // namespace stowage
