// Section: reads one mapping of a plan's first document, key by key.
//
// SectionWriter has the same functions, so that one list of fields (plan_fields.hpp) serves both.
// Bytes are integers in a plan: the unit is part of the key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "estimator/base/bytes.hpp"
#include "estimator/card/software_stack.hpp"
#include "estimator/text/field_reader.hpp"

namespace stowage {

inline constexpr std::int64_t most_plan_bytes = std::int64_t{1} << 62;

class Section : public FieldReader {
 public:
  /// `name` is used in messages: "'totals'". Reports a node that is not a mapping.
  Section(const YamlNode& node, std::string_view name, Mistakes& mistakes);

  void literal(std::string_view key, std::string& target) { text(key, target); }
  /// A word of letters, digits, '-' and '_', which rows of a table can refer to.
  void name(std::string_view key, std::string& target);
  void version(std::string_view key, ReleaseVersion& target);  ///< "12.1"
  void count(std::string_view key, int& target);               ///< 0 to the largest int
  void bytes(std::string_view key, Bytes& target);
  void optional_bytes(std::string_view key, std::optional<Bytes>& target);
  void bytes_or_none(std::string_view key, Bytes& target);  ///< 0 where it is left out
  void optional_real(std::string_view key, std::optional<double>& target);
};

}  // namespace stowage
