// NamePattern: a regular expression of Python's `re` over the path of a module, as the lists of
// quantization_config have them ("model\.layers\.\d+\.mlp\.gate", ".*lm_head").
//
// Read are characters, `.`, classes ([a-z0-9_], \d, \w, \s), groups, `|`, `*`, `+`, `?`, `^` and
// `$`. All states are followed at once (Thompson's construction), so that time is linear in the
// text times the pattern whatever either says.
#pragma once

#include <bitset>
#include <cstddef>
#include <string_view>
#include <vector>

#include "estimator/base/diagnostic.hpp"

namespace stowage {

class NamePattern {
 public:
  /// Errors: a construct that is not read, more than longest_name_pattern bytes.
  [[nodiscard]] static Result<NamePattern> parse(std::string_view text);

  /// re.match: a prefix of the name matches.
  [[nodiscard]] bool matches(std::string_view name) const { return ends_of(name).any; }
  /// A prefix matches that ends where a module's name ends: before or behind a dot, or at the end.
  [[nodiscard]] bool matches_modules(std::string_view name) const {
    return ends_of(name).at_boundary;
  }

 private:
  enum class Kind { bytes, split, begin, end, accept };
  struct State {
    Kind kind = Kind::accept;
    std::bitset<256> bytes = {};
    std::size_t next = 0, other = 0;
  };
  struct Ends {
    bool any = false, at_boundary = false;
  };
  class Parser;

  [[nodiscard]] Ends ends_of(std::string_view name) const;
  void follow(std::size_t state, std::size_t at, std::size_t length,
              std::vector<bool>& reached) const;

  std::vector<State> states_;
  std::size_t start_ = 0;
};

inline constexpr std::size_t longest_name_pattern = 512;  ///< bytes

}  // namespace stowage
