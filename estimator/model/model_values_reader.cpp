#include "estimator/model/model_values_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "estimator/model/sections.hpp"
#include "estimator/model/written_value.hpp"

namespace stowage {

namespace {

constexpr std::int64_t largest_symbol = std::int64_t{1} << 40;

class ModelValuesReader {
 public:
  ModelValuesReader(const YamlNode& root, const ModelOptions& options, ModelDescription& model,
                    Mistakes& mistakes)
      : root_(root), options_(options), model_(model), mistakes_(mistakes) {}

  void read() {
    read_arguments();
    read_symbols();
    refuse_unknown_options();
  }

 private:
  std::optional<Value> value_of(const YamlNode& node, std::string_view what, bool any_word) {
    const ValueRules rules{
        .names = {.model = model_.value_names, .has_batch = false, .has_index = false},
        .any_word = any_word};
    const auto written = read_value(node, what, rules, mistakes_);
    return written ? evaluate(*written, {.model = model_.values}, mistakes_) : std::nullopt;
  }

  void bind(const std::string& name, Value value) {
    model_.value_names.push_back(name);
    model_.values.push_back(std::move(value));
  }

  void read_arguments() {
    if (const YamlNode* node = find_section(root_, "arguments", mistakes_)) {
      for (std::size_t i = 0; i < node->entry_count(); ++i) {
        const YamlNode& key = node->key(i);
        if (!is_free_name(key, model_.value_names, mistakes_)) continue;
        const auto value = value_of(node->value(i), key.text, true);
        bind(key.text, override_of(key.text, value.value_or(Value{Affine(1)})));
      }
    }
  }

  void refuse_unknown_options() {
    std::vector<std::string_view> names(model_.value_names.begin(), model_.value_names.end());
    for (const auto& [name, text] : options_.arguments) {
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      if (name == attention_argument) {
        read_attention(text);
        continue;
      }
      std::string hint = did_you_mean(name, names);
      if (hint.empty() && !names.empty()) {
        hint = fmt::format("its arguments are {}", fmt::join(names, ", "));
      }
      mistakes_.add({.message = fmt::format("the model has no argument or symbol '{}'", name),
                     .span = option_span(name, 0, static_cast<int>(name.size())),
                     .hint = std::move(hint)});
    }
  }

  // The argument that every description has without declaring it.
  void read_attention(const std::string& text) {
    const std::string name(attention_argument);
    const auto* const found =
        std::ranges::find(attention_words, std::string_view(text), &AttentionWord::word);
    if (found == attention_words.end()) {
      mistakes_.add({.message = fmt::format("the argument 'attention' takes sdpa, eager or flash, "
                                            "not '{}'",
                                            text),
                     .span = option_span(name, static_cast<int>(name.size()) + 1,
                                         std::max(static_cast<int>(text.size()), 1))});
      return;
    }
    model_.attention = found->form;
    if (!found->sized_as_sdpa) return;
    mistakes_.add({.severity = Severity::note,
                   .message = fmt::format("the attention '{}' is sized as 'sdpa'", text)});
  }

  SourceSpan option_span(const std::string& name, int offset, int length) const {
    if (const auto place = options_.places.find(name); place != options_.places.end()) {
      return place->second;
    }
    auto source = std::make_shared<const SourceText>(SourceText{
        "<arguments>", fmt::format("{}={}", name, options_.arguments.find(name)->second)});
    return {std::move(source), 1, offset + 1, length};
  }

  // The command line's value of an argument, of the kind that its default has.
  Value override_of(const std::string& name, Value declared) {
    const auto given = options_.arguments.find(name);
    if (given == options_.arguments.end()) return declared;
    const std::string& text = given->second;
    const auto parsed = parse_expression(text, {.has_batch = false, .has_index = false});
    std::optional<Value> value;
    if (declared.word() != nullptr && is_layer_name(text)) {
      value = Value{text};
    } else if (parsed) {
      if (const auto result = parsed->evaluate({})) value = *result;
    }
    if (value && declared.real() != nullptr && value->affine() != nullptr) {
      value = Value{static_cast<double>(value->affine()->constant)};
    }
    if (value && value->of.index() == declared.of.index()) return *value;
    mistakes_.add({.message = fmt::format("'{}' takes a value like its default, {}, not '{}'", name,
                                          describe(declared), text),
                   .span = option_span(name, static_cast<int>(name.size()) + 1,
                                       std::max(static_cast<int>(text.size()), 1))});
    return declared;
  }

  void read_symbols() {
    if (const YamlNode* node = find_section(root_, "symbols", mistakes_)) {
      for (std::size_t i = 0; i < node->entry_count(); ++i) {
        const YamlNode& key = node->key(i);
        if (!is_free_name(key, model_.value_names, mistakes_)) continue;
        const auto value = value_of(node->value(i), key.text, false);
        const auto size =
            value ? to_integer(key.text, 1, largest_symbol, *value, node->value(i).mark, mistakes_)
                  : std::nullopt;
        const Value chosen = override_of(key.text, {Affine(size.value_or(1))});
        std::int64_t bound = chosen.affine() != nullptr ? chosen.affine()->constant : 1;
        if (bound < 1 || bound > largest_symbol) {
          mistakes_.add({.message = fmt::format("'{}' takes an integer between 1 and {}", key.text,
                                                largest_symbol),
                         .span = option_span(key.text, static_cast<int>(key.text.size()) + 1, 1)});
          bound = 1;
        }
        if (key.text == "seq") model_.default_seq = bound;
        if (key.text == "seq" && options_.seq) bound = *options_.seq;
        bind(key.text, {Affine(bound)});
      }
    }
    if (!options_.seq) return;
    if (model_.default_seq == 0) {
      mistakes_.add({.message = "the model has no symbol 'seq'", .span = seq_span()});
    } else if (*options_.seq < 1 || *options_.seq > largest_symbol) {
      mistakes_.add(
          {.message = fmt::format("'seq' takes an integer between 1 and {}", largest_symbol),
           .span = seq_span()});
    }
  }

  [[nodiscard]] SourceSpan seq_span() const {
    const std::string text = fmt::format("{}", *options_.seq);
    return {std::make_shared<const SourceText>(SourceText{"<seq>", text}), 1, 1,
            static_cast<int>(text.size())};
  }

  const YamlNode& root_;
  const ModelOptions& options_;
  ModelDescription& model_;
  Mistakes& mistakes_;
};

}  // namespace

void read_model_values(const YamlNode& root, const ModelOptions& options, ModelDescription& model,
                       Mistakes& mistakes) {
  ModelValuesReader(root, options, model, mistakes).read();
}

}  // namespace stowage
