// Arguments: a command's options and positionals, checked and typed.
//
// Every mistake of a command line is reported in one run, as "<command line>: error: ...". The
// values of an option that was not given are its record's default.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/advice.hpp"
#include "cli/options/command.hpp"
#include "estimator/base/bytes.hpp"
#include "estimator/base/diagnostic.hpp"

namespace stowage {

class Arguments {
 public:
  /// Was the option given (not merely defaulted)?
  [[nodiscard]] bool given(std::string_view option) const;

  // nullopt: neither given nor defaulted. Precondition: the option's record has that type.
  [[nodiscard]] bool flag(std::string_view option) const;
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view option) const;
  [[nodiscard]] std::optional<double> number(std::string_view option) const;
  [[nodiscard]] std::optional<Bytes> size(std::string_view option) const;
  /// 0.8 for "80%"; nullopt: not given, or as a size.
  [[nodiscard]] std::optional<double> share(std::string_view option) const;
  [[nodiscard]] std::optional<std::string> text(std::string_view option) const;  ///< or a choice
  [[nodiscard]] std::map<std::string, std::string> assignments(std::string_view option) const;

  [[nodiscard]] const std::vector<std::string>& positionals() const { return positionals_; }
  /// For advice that repeats them.
  [[nodiscard]] TypedWords typed() const;

 private:
  friend Result<Arguments> parse_arguments(const CommandSpec&, std::span<const std::string>);
  friend Result<Arguments> read_values(const CommandSpec&,
                                       const std::map<std::string, std::vector<std::string>>&,
                                       std::vector<std::string>);
  std::map<std::string, std::vector<std::string>, std::less<>> given_;
  std::vector<std::string> positionals_;
};

/// What follows the command's name. Errors: unknown or repeated options (with a suggestion),
/// missing values, values out of range, missing or surplus positionals.
[[nodiscard]] Result<Arguments> parse_arguments(const CommandSpec& command,
                                                std::span<const std::string> words);

/// The checks on values alone: what parse_arguments does once the words are told apart.
[[nodiscard]] Result<Arguments> read_values(
    const CommandSpec& command, const std::map<std::string, std::vector<std::string>>& given,
    std::vector<std::string> positionals);

/// The form in which a mistake is shown, even one that keeps the words from being parsed.
[[nodiscard]] Format format_for_mistakes(std::span<const std::string> words);

/// "<command line>: error: MESSAGE" with its hint.
[[nodiscard]] Diagnostic command_line_error(std::string message, std::string hint = {});

}  // namespace stowage
