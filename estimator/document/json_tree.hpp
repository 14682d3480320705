// JsonTree: a JSON text as a tree of values with their places, for reading untrusted files.
//
// Only json_tree.cpp includes nlohmann-json. The values are in one vector in the order of the text,
// so that a file of a million numbers is read in a fraction of a second. Limits on bytes, values
// and nesting are checked while reading.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/diagnostic.hpp"

namespace stowage {

inline constexpr std::size_t largest_json = std::size_t{64} << 20;  ///< bytes of text
/// A step file has 6 to 7 bytes a value, so that the largest one has about as many.
inline constexpr std::size_t most_json_values = 10'000'000;
inline constexpr std::size_t deepest_json = 32;  ///< levels of arrays and objects

struct JsonTree;

/// A value of a tree, which must outlive it. An object's children are key, value, key, value...
class JsonValue {
 public:
  enum class Kind : std::uint8_t { null, boolean, integer, real, text, array, object };

  JsonValue(const JsonTree& tree, std::size_t index) : tree_(&tree), index_(index) {}

  [[nodiscard]] Kind kind() const;
  [[nodiscard]] bool is(Kind kind) const { return this->kind() == kind; }
  // Precondition of each: is(that kind).
  [[nodiscard]] bool boolean() const;
  [[nodiscard]] std::int64_t integer() const;
  [[nodiscard]] double real() const;
  [[nodiscard]] std::string_view text() const;
  /// Elements of an array, members of an object.
  [[nodiscard]] std::size_t size() const;
  /// The value of an object's member.
  [[nodiscard]] std::optional<JsonValue> find(std::string_view key) const;

  [[nodiscard]] SourceSpan span() const;
  /// "the text 'x'", "a list", "an object", "the number 3", "null"
  [[nodiscard]] std::string describe() const;
  [[nodiscard]] tl::unexpected<Diagnostics> error(std::string message, std::string hint = {}) const;

  class Iterator {
   public:
    Iterator(const JsonTree& tree, std::size_t index) : tree_(&tree), index_(index) {}
    JsonValue operator*() const { return {*tree_, index_}; }
    Iterator& operator++();
    bool operator==(const Iterator& other) const { return index_ == other.index_; }

   private:
    const JsonTree* tree_;
    std::size_t index_;
  };
  [[nodiscard]] Iterator begin() const;
  [[nodiscard]] Iterator end() const;

 private:
  const JsonTree* tree_;
  std::size_t index_;
};

struct JsonTree {
  JsonTree() = default;
  JsonTree(JsonTree&&) = default;  // not copyable: a copy's texts would point into the original
  JsonTree& operator=(JsonTree&&) = default;

  struct Node {
    JsonValue::Kind kind = JsonValue::Kind::null;
    std::uint32_t begin = 0;     ///< in the text, bytes
    std::uint32_t length = 1;    ///< in the text; of a list or object its bracket alone
    std::uint32_t children = 0;  ///< including keys
    std::uint32_t next = 0;      ///< index of the first node after this one and its descendants
    union {
      std::int64_t integer = 0;
      double real;
      std::size_t text;  ///< index into `texts`
    };
  };
  SourceTextPtr source;
  std::vector<Node> nodes;
  std::vector<std::string_view> texts;  ///< into the source's text or into `decoded`
  std::deque<std::string> decoded;      ///< the texts that were written with escapes

  [[nodiscard]] JsonValue root() const { return {*this, 0}; }
};

/// Errors, with their place: not JSON, not UTF-8, a limit exceeded, an integer beyond 64 bits, a
/// repeated member of an object.
[[nodiscard]] Result<JsonTree> read_json(SourceTextPtr source);

}  // namespace stowage
