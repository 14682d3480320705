#include "estimator/model/sections.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "estimator/model/expression.hpp"

namespace stowage {

namespace {

constexpr std::string_view reserved_names[] = {"if",    "else", "batch", "index", "true",
                                               "false", "and",  "or",    "not"};

}  // namespace

const YamlNode* find_section(const YamlNode& root, std::string_view key, Mistakes& mistakes) {
  const YamlNode* node = root.find(key);
  if (node == nullptr || node->kind == YamlNode::Kind::null) return nullptr;
  if (node->is_mapping()) return node;
  mistakes.error(node->mark,
                 fmt::format("'{}' takes 'name: value' entries, not {}", key, describe(*node)));
  return nullptr;
}

void refuse_unknown_keys(const YamlNode& node, std::span<const std::string_view> known,
                         std::string_view of, Mistakes& mistakes) {
  for (std::size_t i = 0; i < node.entry_count(); ++i) {
    const YamlNode& key = node.key(i);
    if (std::find(known.begin(), known.end(), key.text) != known.end()) continue;
    std::string hint = mistakes.suggest(key.text, known);
    if (hint.empty()) hint = fmt::format("{} has {}", of, fmt::join(known, ", "));
    mistakes.error(key.mark, fmt::format("unknown key '{}'", key.text), std::move(hint));
  }
}

bool is_free_name(const YamlNode& key, std::span<const std::string> taken, Mistakes& mistakes) {
  if (!is_symbol_name(key.text)) {
    mistakes.error(key.mark, fmt::format("'{}' is not a name", key.text),
                   "a name has letters, digits and '_', and starts with a letter");
    return false;
  }
  if (std::find(std::begin(reserved_names), std::end(reserved_names), key.text) !=
      std::end(reserved_names)) {
    mistakes.error(key.mark, fmt::format("'{}' has a meaning of its own", key.text));
    return false;
  }
  if (std::find(taken.begin(), taken.end(), key.text) != taken.end()) {
    mistakes.error(key.mark, fmt::format("'{}' is an argument already", key.text));
    return false;
  }
  return true;
}

}  // namespace stowage
