#include <fmt/format.h>

#include "cli/commands/commands.hpp"
#include "cli/options/arguments.hpp"
#include "estimator/base/name_match.hpp"
#include "estimator/model/load_model.hpp"

namespace stowage {

namespace {

Result<ModelGraph> load_named(const std::string& name, const std::string& directory) {
  const auto found = find_model(name, directory);
  if (!found) return tl::unexpected(found.error());
  return load_model(found->source, found->options);
}

// One file that is no model takes nothing from the others.
Diagnostic left_out(const std::string& name, TypedWords typed, const Diagnostics& mistakes) {
  Diagnostic warning{
      .severity = Severity::warning,
      .message = fmt::format("'{}.yaml' is left out: {}", name, mistakes.front().message),
      .span = mistakes.front().span};
  if (mistakes.size() > 1) {
    typed.positionals = {name};
    warning.hint = fmt::format("and {} more mistake{}: {}", mistakes.size() - 1,
                               mistakes.size() > 2 ? "s" : "", advice(typed, "summary"));
  }
  return warning;
}

}  // namespace

Result<RenderedAnswer> run_models(const CatalogueRequest& request) {
  const std::string directory = request.configs.models();
  RenderedAnswer answer;
  Table table{.columns = {{"Parameters", "parameters"},
                          {"Operators", "operators"},
                          {"Name", "name"},
                          {"As in", "source"}}};
  Json::Array rows;
  for (const std::string& name : model_names(directory)) {
    if (!has_words(name, request.filter)) continue;
    const auto model = load_named(name, directory);
    if (!model) {
      answer.report.notes.push_back(left_out(name, request.typed, model.error()));
      continue;
    }
    const std::int64_t parameters = parameter_count(*model);
    const auto operators = static_cast<std::int64_t>(model->operators.size());
    table.rows.push_back({{parameters, operators, name, model->source}});
    rows.emplace_back(Json::Object{{"name", name},
                                   {"parameters", parameters},
                                   {"trainable_parameters", trainable_parameter_count(*model)},
                                   {"operators", operators},
                                   {"source", model->source}});
  }
  if (rows.empty() && !request.filter.empty()) {
    return failure(command_line_error(fmt::format("no model has '{}' in its name", request.filter),
                                      "stowage models lists them all"));
  }
  answer.report.json = {{"models", std::move(rows)}};
  answer.report.listing = table;
  answer.report.show(std::move(table));
  return answer;
}

}  // namespace stowage
