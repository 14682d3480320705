#include "estimator/model/load_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>

#include "estimator/model/build_model.hpp"
#include "estimator/model/description_reader.hpp"
#include "estimator/model/expand.hpp"
#include "estimator/text/yaml_document.hpp"

namespace stowage {

namespace {

bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool has_word(std::string_view line, std::string_view word) {
  for (std::size_t at = line.find(word); at != std::string_view::npos;
       at = line.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    const bool starts = at == 0 || !is_name_character(line[at - 1]);
    if (starts && (end == line.size() || !is_name_character(line[end]))) return true;
  }
  return false;
}

SourceSpan span_of_place(const char* name) {
  return {.source = std::make_shared<const SourceText>(SourceText{.name = name, .text = ""})};
}

// Adds notes to the first mistake in the description's own text: one for each value that its line
// uses and that comes from a variant or the command line.
void note_given_values(const SourceTextPtr& source, const ModelOptions& options,
                       Diagnostics& mistakes) {
  constexpr std::size_t longest_shown = 60;
  const auto first = std::find_if(mistakes.begin(), mistakes.end(), [&](const Diagnostic& mistake) {
    return mistake.span.source == source;
  });
  if (first == mistakes.end()) return;
  std::string_view line = source->text;
  for (int i = 1; i < first->span.line; ++i) line.remove_prefix(line.find('\n') + 1);
  line = line.substr(0, line.find('\n'));
  const auto note = [&](std::string_view name, std::string_view value, SourceSpan span) {
    if (!has_word(line, name)) return;
    first->notes.push_back(
        {.severity = Severity::note,
         .message = fmt::format("'{}' is {} here", name, value.substr(0, longest_shown)),
         .span = std::move(span)});
  };
  for (const auto& [name, text] : options.arguments) {
    if (name == "seq" && options.seq) continue;
    if (name == attention_argument) continue;  // a layer's usual name, and rarely a value's
    const auto place = options.places.find(name);
    note(name, text, place != options.places.end() ? place->second : span_of_place("<arguments>"));
  }
  if (options.seq) note("seq", fmt::format("{}", *options.seq), span_of_place("<seq>"));
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
  const auto fine_tuning = read_fine_tuning(options.fine_tuning, description.train.fine_tuning);
  if (!fine_tuning) return tl::unexpected(fine_tuning.error());
  description.train.fine_tuning.stored = options.stored;
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
