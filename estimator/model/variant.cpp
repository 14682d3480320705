#include "estimator/model/variant.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "estimator/text/mistakes.hpp"
#include "estimator/text/yaml_document.hpp"

namespace stowage {

namespace {

constexpr std::string_view variant_keys[] = {"model", "source", "based_on", "arguments", "symbols"};

void read_values(const YamlNode& node, std::string_view section, Variant& variant,
                 Mistakes& mistakes) {
  if (node.kind == YamlNode::Kind::null) return;
  if (!node.is_mapping()) {
    mistakes.error(node.mark, fmt::format("'{}' takes 'name: value' entries, not {}", section,
                                          describe(node)));
    return;
  }
  for (std::size_t i = 0; i < node.entry_count(); ++i) {
    const YamlNode& value = node.value(i);
    if (!value.is_scalar()) {
      mistakes.error(value.mark, fmt::format("'{}' takes a number or a word, not {}",
                                             node.key(i).text, describe(value)));
      continue;
    }
    variant.options.arguments[node.key(i).text] = value.text;
    variant.options.places[node.key(i).text] = span_of(mistakes.source(), node.key(i).mark);
  }
}

void read_word(const YamlNode& node, std::string_view key, std::string& into, Mistakes& mistakes) {
  if (node.is_scalar()) {
    into = node.text;
  } else {
    mistakes.error(node.mark, fmt::format("'{}' takes a word, not {}", key, describe(node)));
  }
}

}  // namespace

bool may_be_variant(const SourceText& source) {
  constexpr std::string_view key = "based_on:";
  for (std::size_t at = source.text.find(key); at != std::string::npos;
       at = source.text.find(key, at + 1)) {
    if (at == 0 || source.text[at - 1] == '\n') return true;
  }
  return false;
}

Result<Variant> read_variant(const SourceTextPtr& source) {
  auto document = read_yaml(source);
  if (!document) return tl::unexpected(std::move(document.error()));
  Mistakes mistakes(source);
  for (Diagnostic& mistake : document->mistakes) mistakes.add(std::move(mistake));
  Variant variant;
  const YamlNode& root = *document->root;
  for (std::size_t i = 0; root.is_mapping() && i < root.entry_count(); ++i) {
    const YamlNode& key = root.key(i);
    const YamlNode& value = root.value(i);
    if (key.text == "model") {
      read_word(value, key.text, variant.options.name, mistakes);
    } else if (key.text == "source") {
      read_word(value, key.text, variant.options.source, mistakes);
    } else if (key.text == "based_on") {
      read_word(value, key.text, variant.base, mistakes);
      variant.base_span = span_of(source, value.mark);
    } else if (key.text == "arguments" || key.text == "symbols") {
      read_values(value, key.text, variant, mistakes);
    } else {
      std::string hint = did_you_mean(key.text, variant_keys);
      if (hint.empty()) hint = fmt::format("it has {}", fmt::join(variant_keys, ", "));
      mistakes.error(
          key.mark,
          fmt::format("'{}' cannot stand in a description that is based on another", key.text),
          std::move(hint));
    }
  }
  if (root.is_mapping() && root.find("model") == nullptr) {
    mistakes.error(root.mark, "the description has no 'model: name'");
  }
  if (!mistakes.any_errors() && variant.base.empty()) {
    mistakes.error(root.mark, "'based_on' takes the name of a model");
  }
  if (mistakes.any_errors()) return tl::unexpected(std::move(mistakes).in_order());
  return variant;
}

}  // namespace stowage
