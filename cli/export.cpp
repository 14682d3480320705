#include <filesystem>

#include "cli/commands.hpp"
#include "cli/file_kind.hpp"
#include "cli/output_file.hpp"
#include "estimator/adapt/adapt.hpp"
#include "estimator/base/read_source.hpp"
#include "planner/export/dot.hpp"
#include "planner/plan/plan_file.hpp"

namespace stowage {

namespace {

bool is_plan(const SourceText& source) { return stowage_file(source.text) == StowageFile::plan; }

// A plan is a file or stdin, which is read once; anything else is a model.
Result<FoundModel> requested_source(const std::string& argument, const ConfigDirectory& configs) {
  std::error_code ignored;
  if (argument == "-" || std::filesystem::is_regular_file(argument, ignored)) {
    auto source = read_source(argument, FileKind::plan);
    if (!source) return tl::unexpected(std::move(source.error()));
    if (argument == "-" || is_plan(**source)) return FoundModel{.source = *std::move(source)};
  }
  return find_model(argument, configs.models());
}

Result<std::string> drawing(const ExportRequest& request) {
  auto source = requested_source(request.source, request.configs);
  if (!source) return tl::unexpected(std::move(source.error()));
  if (is_plan(*source->source)) {
    const auto plan = read_plan(std::move(source->source));
    if (!plan) return tl::unexpected(plan.error());
    return export_dot(*plan);
  }
  if (auto mistake = not_a_model(*source->source)) return failure(*std::move(mistake));
  const auto model = load_adapted(std::move(source->source),
                                  overridden(std::move(source->options), request.options));
  if (!model) return tl::unexpected(model.error());
  return export_dot(*model);
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
