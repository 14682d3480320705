#include "cli/commands.hpp"
#include "cli/config_directory.hpp"
#include "estimator/model/load_model.hpp"

namespace stowage {

Result<Answer> run_models(const Arguments& arguments) {
  const auto configs = find_configs(arguments);
  if (!configs) return tl::unexpected(configs.error());

  Answer answer;
  Table table{.columns = {{"Parameters", "parameters"},
                          {"Operators", "operators"},
                          {"Name", "name"},
                          {"As in", "source"}}};
  Json::Array rows;
  for (const std::string& name : model_names(configs->models())) {
    const auto found = find_model(name, configs->models());
    if (!found) return tl::unexpected(found.error());
    const auto model = load_model(found->source, found->options);
    if (!model) return tl::unexpected(model.error());
    const std::int64_t parameters = parameter_count(*model);
    const auto operators = static_cast<std::int64_t>(model->operators.size());
    table.rows.push_back({{parameters, operators, name, model->source}});
    rows.emplace_back(Json::Object{{"name", name},
                                   {"parameters", parameters},
                                   {"trainable_parameters", trainable_parameter_count(*model)},
                                   {"operators", operators},
                                   {"source", model->source}});
  }
  answer.report.json = {{"models", std::move(rows)}};
  answer.report.listing = table;
  answer.report.show(std::move(table));
  return answer;
}

}  // namespace stowage
