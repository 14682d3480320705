// FieldReader: reads a mapping of a YAML file key by key: a card, a calibration, a host, the head
// of a plan.
//
// Each key is read with the type of its value; finish() reports keys that were not read as unknown.
// All mistakes are reported with their places. If a key is absent or wrong, its target keeps its
// value.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/base/quantity.hpp"
#include "estimator/text/mistakes.hpp"
#include "estimator/text/yaml_document.hpp"

namespace stowage {

/// The words of messages about a mapping and its fields.
struct FieldWords {
  std::string_view of;  ///< the mapping in messages: "'totals'", "a measurement"
  /// "a host file": "unknown key 'x' in a host file"; empty: "'totals' has no 'x'".
  std::string_view file = {};
  enum class Refusal {
    must_be,  ///< "'key' must be an integer, not the word 'x'"
    takes,    ///< "'key' takes a size such as 32 GiB, not '400'"
    is_not,   ///< "'key' is not a size such as 32 GiB: '400'"
  };
  Refusal refusal = Refusal::must_be;
};

enum class Presence { optional, required };

class FieldReader {
 public:
  /// Reports a node that is not a mapping. `node` and `mistakes` outlive the reader.
  FieldReader(const YamlNode& node, const FieldWords& words, Mistakes& mistakes);

  /// Null: the key is absent, which is reported if it is required.
  const YamlNode* find(std::string_view key, Presence presence = Presence::required);

  // Each of these returns whether there is a valid value. `expected`: the value in the message.

  /// Any text.
  bool text(std::string_view key, std::string& target, Presence presence = Presence::required);
  /// A text that is not empty.
  bool word(std::string_view key, std::string& target, Presence presence,
            std::string_view expected = "one plain value");
  bool integer(std::string_view key, std::int64_t least, std::int64_t most, std::int64_t& target,
               Presence presence = Presence::required, std::string expected = {});
  /// From `least` to `most`, both finite.
  bool real(std::string_view key, double& target, Presence presence = Presence::required,
            std::string_view expected = "a number that is not negative", double least = 0,
            double most = std::numeric_limits<double>::max());
  bool boolean(std::string_view key, bool& target);
  /// A size with a unit; `example`, for the message: "24 GiB".
  bool size(std::string_view key, Bytes& target, Presence presence, std::string_view example);
  /// A number with one of the units.
  bool quantity(std::string_view key, double& target, std::span<const Unit> units,
                Presence presence, std::string_view expected);
  /// One of `values`, written as its to_string.
  template <typename Enum, std::size_t count>
  bool choice(std::string_view key, const std::array<Enum, count>& values, Enum& target) {
    const YamlNode* value = find(key);
    if (value == nullptr) return false;
    std::string expected;
    for (const Enum candidate : values) {
      if (value->is_scalar() && value->text == to_string(candidate)) {
        target = candidate;
        return true;
      }
      expected += (expected.empty() ? "" : " or ") + std::string(to_string(candidate));
    }
    return refuse(*value, key, expected);
  }

  /// Reports that a value is not `expected`, in the mapping's words. Always false.
  bool refuse(const YamlNode& value, std::string_view key, std::string_view expected);
  void wrong(const YamlNode& at, std::string message);
  /// Reports the keys that were not read.
  void finish();

 private:
  const YamlNode& node_;
  std::string of_, file_;
  FieldWords::Refusal refusal_;
  Mistakes& mistakes_;
  std::vector<std::string_view> asked_;
};

}  // namespace stowage
