#include "estimator/model/load_model.hpp"

#include "estimator/model/build_model.hpp"
#include "estimator/model/description_reader.hpp"
#include "estimator/model/expand.hpp"
#include "estimator/model/yaml_document.hpp"

namespace stowage {

Result<ModelGraph> load_model(SourceTextPtr source, const ModelOptions& options) {
  auto document = read_yaml(source);
  if (!document) return tl::unexpected(std::move(document.error()));
  Mistakes mistakes(source);
  for (Diagnostic& mistake : document->mistakes) mistakes.add(std::move(mistake));
  ModelDescription description = read_description(*document, options, mistakes);
  if (!options.name.empty()) description.name = options.name;
  if (!options.source.empty()) description.source = options.source;
  if (options.precision) description.train.precision = *options.precision;
  ModelGraph model = build_model(description, expand(description, mistakes), mistakes);
  if (!mistakes.any_errors() && !model.output.valid()) {
    mistakes.error({}, "the description gives no output");
  }
  const bool failed = mistakes.any_errors();
  Diagnostics diagnostics = std::move(mistakes).in_order();
  if (failed) return tl::unexpected(std::move(diagnostics));
  model.warnings = std::move(diagnostics);
  return model;
}

}  // namespace stowage
