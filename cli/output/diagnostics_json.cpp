#include "cli/output/diagnostics_json.hpp"

#include "cli/output/report.hpp"
#include "estimator/base/severity.hpp"

namespace stowage {

Json::Array diagnostics_array(std::span<const Diagnostic> diagnostics) {
  Json::Array all;
  for (const Diagnostic& diagnostic : diagnostics) {
    const SourceSpan& span = diagnostic.span;
    const bool has_place = span.source && span.line > 0;
    all.emplace_back(
        Json::Object{{"severity", to_string(diagnostic.severity)},
                     {"message", diagnostic.message},
                     {"file", span.source ? Json(span.source->name) : Json()},
                     {"line", has_place ? Json(span.line) : Json()},
                     {"column", has_place ? Json(span.column) : Json()},
                     {"hint", diagnostic.hint.empty() ? Json() : Json(diagnostic.hint)},
                     {"notes", diagnostics_array(diagnostic.notes)}});
  }
  return all;
}

Json diagnostics_json(std::span<const Diagnostic> diagnostics) {
  return Json::Object{{"schema_version", schema_version},
                      {"diagnostics", diagnostics_array(diagnostics)}};
}

}  // namespace stowage
