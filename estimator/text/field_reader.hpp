// FieldReader: one mapping of a YAML file, read key by key: a card, a calibration, a host, the head
// of a plan.
//
// Each key is asked for with the type that its value has; a key that nobody asked for is unknown,
// which finish() reports. All mistakes are reported with their places. A target keeps what it held
// where its key is absent or wrong.
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

/// How messages speak of a mapping and of its fields.
struct FieldWords {
  std::string_view of;  ///< "'totals'", "a measurement": what lacks a key
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
  /// Reports a node that is no mapping. `node` and `mistakes` outlive the reader.
  FieldReader(const YamlNode& node, const FieldWords& words, Mistakes& mistakes);

  /// Null where the key is absent, which is reported if it is required.
  const YamlNode* find(std::string_view key, Presence presence = Presence::required);

  /// Each returns whether there is such a value. `expected` stands in the message.

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
  /// With a unit; `example`: "24 GiB".
  bool size(std::string_view key, Bytes& target, Presence presence, std::string_view example);
  /// With one of the units.
  bool quantity(std::string_view key, double& target, std::span<const Unit> units,
                Presence presence, std::string_view expected);
  /// A word that `to_string` gives for one of `values`.
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
  /// Reports the keys that nobody has asked for.
  void finish();

 protected:
 private:
  const YamlNode& node_;
  std::string of_, file_;
  FieldWords::Refusal refusal_;
  Mistakes& mistakes_;
  std::vector<std::string_view> asked_;
};

}  // namespace stowage
