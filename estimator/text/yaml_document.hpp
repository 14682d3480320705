// YamlDocument: a YAML text as a tree of nodes with places.
//
// The one source that includes yaml-cpp is yaml_document.cpp. What is kept here and not by YAML's
// own node tree: the order of mappings, whether a scalar was quoted, the place of every node, and
// repeated keys. Scalars stay text ("010" is not 8): their meaning is the reader's business.
// An alias shares its anchor's node; the caps below count what a walk would visit.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "estimator/base/diagnostic.hpp"

namespace stowage {

/// A place in the text at hand: line and column 1-based, length in bytes. Line 0: no place.
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
  bool quoted = false;  ///< scalar: written in quotes, so a word and never a number
  Mark mark;            ///< of a list or mapping: where its first item or its bracket stands
  std::string text;     ///< scalar
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
  std::deque<YamlNode> nodes;      ///< owns; addresses are stable
  const YamlNode* root = nullptr;  ///< never null in a document that was read
  Diagnostics mistakes;            ///< repeated keys and the like: the tree stands without them
};

inline constexpr std::size_t largest_description = std::size_t{16} << 20;  ///< bytes of text
inline constexpr int deepest_yaml = 100;                   ///< levels of lists and mappings
inline constexpr std::size_t most_yaml_nodes = 4'000'000;  ///< with aliases written out

/// Fails where the text is not UTF-8, not YAML, empty, or beyond a cap; all else that is wrong
/// with it is in `mistakes`.
[[nodiscard]] Result<YamlDocument> read_yaml(SourceTextPtr source);

}  // namespace stowage
