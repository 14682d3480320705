#include "answers/planning/export.hpp"

#include <filesystem>
#include <utility>

#include "answers/subject/asked_model.hpp"
#include "answers/subject/file_kind.hpp"
#include "estimator/base/read_source.hpp"
#include "estimator/formats/import_model.hpp"
#include "planner/export/dot.hpp"
#include "planner/plan/plan_file.hpp"

namespace stowage {

namespace {

bool is_plan(const SourceText& source) { return stowage_file(source.text) == StowageFile::plan; }

// A plan is a file or stdin, which is read once; anything else is a model.
Result<FoundModel> asked_source(const ModelQuestion& question) {
  const std::string& argument = question.source;
  std::error_code ignored;
  if (argument == "-" || std::filesystem::is_regular_file(argument, ignored)) {
    if (argument == "-" ||
        stowage_file(read_file_head(argument).first_bytes) == StowageFile::plan) {
      return read_source(argument, FileKind::plan).map([](SourceTextPtr&& source) {
        return FoundModel{.source = std::move(source)};
      });
    }
  }
  return find_asked_model(question);
}

}  // namespace

Result<std::string> answer(const ExportQuestion& question) {
  auto source = asked_source(question.model);
  if (!source) return tl::unexpected(std::move(source.error()));
  if (is_plan(*source->source)) {
    const auto plan = read_plan(std::move(source->source));
    if (!plan) return tl::unexpected(plan.error());
    return export_dot(*plan);
  }
  if (auto mistake = program_to_export(*source->source)) return failure(*std::move(mistake));
  const auto model = load_asked_model(*std::move(source), question.model);
  if (!model) return tl::unexpected(model.error());
  return export_dot(model->graph);
}

}  // namespace stowage
