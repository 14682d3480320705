#include "answers/subject/asked_model.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "answers/question/question_error.hpp"
#include "answers/subject/file_kind.hpp"
#include "answers/subject/way_in.hpp"
#include "estimator/adapt/adapt.hpp"
#include "estimator/base/read_source.hpp"
#include "estimator/document/step_document.hpp"
#include "estimator/formats/import_model.hpp"
#include "estimator/model/checkpoint_formats.hpp"

namespace stowage {

namespace {

FoundModel described_by_reader(ImportedModel imported) {
  FoundModel found{.source = std::move(imported.description),
                   .options = {},
                   .notes = std::move(imported.notes),
                   .takes_values = imported.takes_values};
  found.options.stored = std::move(imported.stored);
  return found;
}

bool is_piped(const std::string& source) {
  std::error_code code;
  return source == "-" ||
         (std::filesystem::exists(source, code) && !std::filesystem::is_regular_file(source, code));
}

// What only readers of foreign formats listen to.
std::optional<Diagnostic> idle_import_options(const ModelQuestion& question) {
  if (!question.loss && !question.allow_unknown) return std::nullopt;
  return question_error(fmt::format("`{}` is for a model of another format, and '{}' is a "
                                    "description",
                                    question.loss ? "loss" : "allow_unknown", question.source),
                        "a description says its loss and its operators itself");
}

}  // namespace

Result<AskedModel> load_asked_model(FoundModel found, const ModelQuestion& question) {
  if (auto mistake = not_a_model(*found.source)) return failure(*std::move(mistake));
  ModelOptions given = question.options;
  if (!found.takes_values) {
    given.seq.reset();
    given.arguments.clear();
  }
  ModelOptions options = overridden(std::move(found.options), given);
  auto graph = load_adapted(found.source, options);
  if (!graph) return tl::unexpected(std::move(graph.error()));
  if (options.stored && options.fine_tuning.base) {
    graph->warnings.push_back(
        {.severity = Severity::note,
         .message = fmt::format("the file's weights are quantised ({}); they are sized as if they "
                                "were not, and then as asked for",
                                options.stored->method)});
  }
  graph->warnings.insert(graph->warnings.begin(), found.notes.begin(), found.notes.end());
  return AskedModel{std::move(found.source), std::move(options), std::move(*graph)};
}

Result<FoundModel> find_asked_model(const ModelQuestion& question) {
  const ImportOptions options{.seq = question.options.seq,
                              .values = question.options.arguments,
                              .loss = question.loss,
                              .allow_unknown = question.allow_unknown};
  auto imported = import_model(read_file_head(question.source), options);
  if (!imported) return tl::unexpected(std::move(imported.error()));
  if (*imported) return described_by_reader(**std::move(imported));
  if (std::error_code code; std::filesystem::is_directory(question.source, code)) {
    if (auto mistake = foreign_folder(question.source)) return failure(*std::move(mistake));
  }
  auto found = find_model(question.source, question.configs.models());
  if (!found) return found;
  if (is_piped(question.source)) {
    imported = import_model(file_head_of(found->source), options);
    if (!imported) return tl::unexpected(std::move(imported.error()));
    if (*imported) return described_by_reader(**std::move(imported));
  }
  if (auto mistake = idle_import_options(question)) return failure(*std::move(mistake));
  return found;
}

Result<AskedModel> read_asked_model(const ModelQuestion& question) {
  auto found = find_asked_model(question);
  if (!found) return tl::unexpected(std::move(found.error()));
  if (is_step_file(found->source->text)) {
    return failure(Diagnostic{.message = "this is a step, and a description is wanted here",
                              .span = {.source = found->source},
                              .hint = "stowage check, batch, summary and plan take a step's file"});
  }
  return load_asked_model(*std::move(found), question);
}

}  // namespace stowage
