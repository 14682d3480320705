// YamlDocument: a YAML text as a tree of nodes with places.
//
// Only yaml_document.cpp includes yaml-cpp. Unlike yaml-cpp's own node tree, this one keeps the
// order of mappings, whether a scalar was quoted, the place of every node, and reports repeated
// keys. Scalars remain text ("010" is not 8), which readers interpret. An alias shares its anchor's
// node; the limits below count the nodes that a walk would visit.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "estimator/base/diagnostic.hpp"

namespace stowage {

/// A place in a text: line and column count from 1, length is in bytes. Line 0: no place.
struct Mark {
  int line = 0;
  int column = 0;
  int length = 1;
  bool operator==(const Mark&) const = default;
};

[[nodiscard]] SourceSpan span_of(const SourceTextPtr& source, const Mark& mark);

struct YamlNode {
  enum class Kind { null, scalar, sequence, mapping };
  Kind kind = Kind::null;
  bool quoted = false;                 ///< scalar: written in quotes, so never a number
  Mark mark;                           ///< of a list or mapping: its first item or its bracket
  std::string text;                    ///< scalar
  std::vector<const YamlNode*> items;  ///< sequence: the items; mapping: key, value, key, value...

  [[nodiscard]] bool is_scalar() const { return kind == Kind::scalar; }
  [[nodiscard]] bool is_mapping() const { return kind == Kind::mapping; }
  [[nodiscard]] bool is_sequence() const { return kind == Kind::sequence; }
  /// Entries of a mapping.
  [[nodiscard]] std::size_t entry_count() const { return items.size() / 2; }
  [[nodiscard]] const YamlNode& key(std::size_t i) const { return *items[2 * i]; }
  [[nodiscard]] const YamlNode& value(std::size_t i) const { return *items[2 * i + 1]; }
  /// The value of `key` in a mapping, or null.
  [[nodiscard]] const YamlNode* find(std::string_view key) const;
};

/// "a list", "a mapping", "the word 'x'", "nothing".
[[nodiscard]] std::string describe(const YamlNode& node);

struct YamlDocument {
  SourceTextPtr source;
  std::deque<YamlNode> nodes;      ///< all nodes; addresses are stable
  const YamlNode* root = nullptr;  ///< not null after read_yaml()
  Diagnostics mistakes;            ///< such as repeated keys, which are left out of the tree
};

inline constexpr std::size_t largest_description = std::size_t{16} << 20;  ///< bytes of text
inline constexpr int deepest_yaml = 100;                   ///< levels of lists and mappings
inline constexpr std::size_t most_yaml_nodes = 3'000'000;  ///< with aliases written out

/// Errors: the text is not UTF-8, not YAML, empty, or beyond a limit. Other mistakes are in
/// `mistakes` of the result.
[[nodiscard]] Result<YamlDocument> read_yaml(SourceTextPtr source);

}  // namespace stowage
