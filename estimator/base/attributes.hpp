// Attributes: an operator's settings, typed, complete (defaults filled in) and in the row's order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "estimator/base/shape.hpp"
#include "estimator/base/shared.hpp"

namespace stowage {

enum class AttributeType {
  integer,     ///< 64
  integers,    ///< a list of a fixed length, or one number for all: 3, [3, 3]
  dimensions,  ///< a shape whose entries may use symbols: [batch, seq, 64]; -1: the rest
  real,        ///< 0.1
  boolean,     ///< true
  choice,      ///< one word of a fixed list
  text,        ///< any characters: "bhid,bhjd->bhij"
};

using AttributeValue =
    std::variant<std::int64_t, std::vector<std::int64_t>, Shape, double, bool, std::string>;

/// One attribute of a catalogue row: what help, docs, checks and the reader are made from.
struct AttributeSpec {
  std::string_view name;
  AttributeType type = AttributeType::integer;
  std::string_view doc;                         ///< one line, with unit
  std::optional<AttributeValue> default_value;  ///< nullopt: required
  std::optional<double> minimum = {};           ///< inclusive, of every number in it
  std::optional<double> maximum = {};           ///< inclusive; a real is infinite where a bound is
  int length = 0;                               ///< integers: the list's length; 0: any
  std::vector<std::string_view> choices = {};   ///< choice: the words
  int other_length = 0;                         ///< integers: another length that will do; 0: none
};

/// Copies share their entries (base/shared.hpp): each kernel call of an operator has them.
class Attributes {
 public:
  void set(std::string_view name, AttributeValue value);
  [[nodiscard]] bool has(std::string_view name) const;

  // Precondition of each: the attribute exists and has that type (the row declared it so).
  [[nodiscard]] std::int64_t integer(std::string_view name) const;
  [[nodiscard]] const std::vector<std::int64_t>& integers(std::string_view name) const;
  [[nodiscard]] const Shape& dimensions(std::string_view name) const;
  [[nodiscard]] double real(std::string_view name) const;
  [[nodiscard]] bool boolean(std::string_view name) const;
  [[nodiscard]] const std::string& text(std::string_view name) const;

  using Entries = std::vector<std::pair<std::string, AttributeValue>>;
  [[nodiscard]] const Entries& entries() const { return *entries_; }
  bool operator==(const Attributes&) const = default;

 private:
  [[nodiscard]] const AttributeValue& at(std::string_view name) const;
  Shared<Entries> entries_;
};

/// "3", "[3, 3]", "[batch, 64]", "0.1", "true", "same".
[[nodiscard]] std::string to_string(const AttributeValue& value);

}  // namespace stowage
