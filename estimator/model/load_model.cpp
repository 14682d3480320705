#include "estimator/model/load_model.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "estimator/model/build_model.hpp"
#include "estimator/model/description_reader.hpp"
#include "estimator/model/expand.hpp"
#include "estimator/model/yaml_document.hpp"

namespace stowage {

namespace {

// The first mistake in the description's own text gets a note of each value that does not come from
// it: of a variant's, or of the command line's.
void note_given_values(const SourceTextPtr& source, const ModelOptions& options,
                       Diagnostics& mistakes) {
  const auto first = std::find_if(mistakes.begin(), mistakes.end(), [&](const Diagnostic& mistake) {
    return mistake.span.source == source;
  });
  if (first == mistakes.end()) return;
  for (const auto& [name, text] : options.arguments) {
    const auto place = options.places.find(name);
    first->notes.push_back(
        {.severity = Severity::note,
         .message = fmt::format("'{}' is {} here", name, text),
         .span = place != options.places.end()
                     ? place->second
                     : SourceSpan{.source = std::make_shared<const SourceText>(
                                      SourceText{.name = "<option --set>", .text = ""})}});
  }
}

}  // namespace

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
  if (failed) {
    note_given_values(source, options, diagnostics);
    return tl::unexpected(std::move(diagnostics));
  }
  model.warnings = std::move(diagnostics);
  return model;
}

}  // namespace stowage
