// KerasConfig: typed access to a layer's `config`, a JSON object (read as YAML, so that every value
// has a place). If a value is absent, null or of another kind, the caller's fallback is returned.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimator/text/yaml_document.hpp"

namespace stowage {

class KerasConfig {
 public:
  explicit KerasConfig(const YamlNode* node = nullptr) : node_(node) {}

  [[nodiscard]] const YamlNode* node() const { return node_; }
  [[nodiscard]] const YamlNode* find(std::string_view key) const;
  /// The object under `key`; empty: there is none.
  [[nodiscard]] KerasConfig at(std::string_view key) const { return KerasConfig(find(key)); }
  [[nodiscard]] std::string text(std::string_view key, std::string_view otherwise = {}) const;
  [[nodiscard]] bool flag(std::string_view key, bool otherwise) const;
  [[nodiscard]] std::optional<double> number(std::string_view key) const;
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view key) const;
  /// A list of `count` integers, or one integer repeated `count` times. Empty: it is neither.
  [[nodiscard]] std::vector<std::int64_t> integers(std::string_view key, std::size_t count) const;
  /// A list of integers of any length; empty: it is not a list.
  [[nodiscard]] std::vector<std::int64_t> list(std::string_view key) const;
  /// The class name of an object, {"class_name": "ReLU", ...}, or a plain word, "relu".
  [[nodiscard]] std::string class_name(std::string_view key) const;

 private:
  const YamlNode* node_;
};

[[nodiscard]] std::optional<std::int64_t> integer_of(const YamlNode& node);
[[nodiscard]] bool is_nothing(const YamlNode* node);

}  // namespace stowage
