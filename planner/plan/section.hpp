// Section: one mapping of a plan's head, read key by key.
//
// Each key is asked for once; a key that nobody asked for is unknown, which finish() reports.
// SectionWriter has the same functions, so that one list of fields (plan_fields.hpp) serves both.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/card/software_stack.hpp"
#include "estimator/model/mistakes.hpp"
#include "estimator/text/yaml_document.hpp"

namespace stowage {

inline constexpr std::int64_t most_plan_bytes = std::int64_t{1} << 62;

class Section {
 public:
  /// `name` stands in the messages: "'totals'". Reports a node that is no mapping.
  Section(const YamlNode& node, std::string name, Mistakes& mistakes);

  /// Null where the key is absent, which is reported if it is required.
  const YamlNode* find(std::string_view key, bool required = true);
  void text(std::string_view key, std::string& target);
  void literal(std::string_view key, std::string& target) { text(key, target); }
  /// A word of letters, digits, '-' and '_', which rows of a table can refer to.
  void name(std::string_view key, std::string& target);
  void version(std::string_view key, ReleaseVersion& target);  ///< "12.1"
  void integer(std::string_view key, std::int64_t least, std::int64_t most, std::int64_t& target);
  void count(std::string_view key, int& target);  ///< 0 to the largest int
  void bytes(std::string_view key, Bytes& target);
  void optional_bytes(std::string_view key, std::optional<Bytes>& target);
  void real(std::string_view key, double& target);  ///< finite, not negative
  void boolean(std::string_view key, bool& target);
  /// A word that `to_string` gives for one of `values`.
  template <typename Enum, std::size_t count>
  void choice(std::string_view key, const std::array<Enum, count>& values, Enum& target) {
    const YamlNode* value = find(key);
    if (value == nullptr) return;
    std::string expected;
    for (const Enum candidate : values) {
      if (value->is_scalar() && value->text == to_string(candidate)) {
        target = candidate;
        return;
      }
      expected += (expected.empty() ? "" : " or ") + std::string(to_string(candidate));
    }
    refuse(*value, key, expected);
  }
  void refuse(const YamlNode& value, std::string_view key, std::string_view expected);

  void finish();

 private:
  const YamlNode& node_;
  std::string name_;
  Mistakes& mistakes_;
  std::vector<std::string_view> asked_;
};

}  // namespace stowage
