// SettingsTree: a configuration of another program as a value, and its text as JSON, YAML or TOML.
//
// Members keep the order in which they were added. The texts are read by the programs' own readers
// as the same value: texts in quotes, numbers with a point where they are real ones, none of the
// forms that a reader of YAML 1.1 takes for something else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "estimator/base/bytes.hpp"

namespace stowage {

class SettingsTree {
 public:
  using List = std::vector<SettingsTree>;
  using Members = std::vector<std::pair<std::string, SettingsTree>>;

  SettingsTree() = default;                                             ///< null
  SettingsTree(bool value) : value_(value) {}                           // NOLINT: a value is a tree
  SettingsTree(std::int64_t value) : value_(value) {}                   // NOLINT
  SettingsTree(int value) : value_(std::int64_t{value}) {}              // NOLINT
  SettingsTree(double value) : value_(value) {}                         // NOLINT
  SettingsTree(Bytes value) : value_(value.count()) {}                  // NOLINT
  SettingsTree(std::string value) : value_(std::move(value)) {}         // NOLINT
  SettingsTree(std::string_view value) : value_(std::string(value)) {}  // NOLINT
  SettingsTree(const char* value) : value_(std::string(value)) {}       // NOLINT
  SettingsTree(List value) : value_(std::move(value)) {}                // NOLINT
  SettingsTree(Members value) : value_(std::move(value)) {}             // NOLINT

  [[nodiscard]] static SettingsTree list_of(const std::vector<std::string>& words);

  using Value =
      std::variant<std::monostate, bool, std::int64_t, double, std::string, List, Members>;
  [[nodiscard]] const Value& value() const { return value_; }

  /// Appends a member. Precondition: this is an object, or null, which becomes one.
  void add(std::string name, SettingsTree value);

 private:
  Value value_;
};

/// A value that is no list and no object, as all three forms write it.
[[nodiscard]] std::string plain_value(const SettingsTree& tree);
/// Two spaces an indentation, lists of plain values, and objects in
/// a list, in one line, a newline at the end.
[[nodiscard]] std::string json_text(const SettingsTree& tree);
/// Block style; a newline at the end. Precondition: the tree is an object.
[[nodiscard]] std::string yaml_text(const SettingsTree& tree);
/// Plain members first, then a table for each object; null members are left out, as TOML has no
/// null. Precondition: the tree is an object, and no list holds objects.
[[nodiscard]] std::string toml_text(const SettingsTree& tree);

}  // namespace stowage
