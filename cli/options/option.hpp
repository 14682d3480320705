// OptionSpec: one option of the command line, and all that the program knows about it.
//
// One table holds every option of every command; parsing, both helps, docs/commands.md and the
// checks of values are made from it. To add an option, write its record in one of the *_option*.cpp
// (option_records.hpp) and name it in the commands that take it (command_table.cpp).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace stowage {

enum class OptionType {
  flag,     ///< no value
  integer,  ///< within [minimum, maximum]
  number,   ///< a real number within [minimum, maximum]
  size,     ///< bytes, as parse_bytes reads them
  choice,   ///< one word of `choices`
  text,
  assignment,  ///< name=value; may be given several times
};

enum class OptionGroup { model, training, device, planning, validation, output };
inline constexpr int option_group_count = static_cast<int>(OptionGroup::output) + 1;
[[nodiscard]] std::string_view to_string(OptionGroup group);

inline constexpr std::string_view any_number = "N";  ///< among OptionSpec::words

struct OptionSpec {
  std::string_view name;  ///< without the dashes: "batch"
  OptionType type = OptionType::text;
  OptionGroup group = OptionGroup::model;
  std::string_view value;               ///< what stands for the value in help: "N", "SIZE", "FILE"
  std::string_view help;                ///< a phrase without a full stop
  std::string_view default_value = {};  ///< as typed; taken where the option is not given
  std::string_view default_note = {};   ///< or what holds then, in words
  /// Of an option whose value may be left out: what it means then. The word behind it is its value
  /// where the word, or its part before a comma, is one of `words`; "every=" stands for all words
  /// that start so, any_number for all numbers.
  std::string_view alone = {};
  std::vector<std::string_view> words = {};
  std::string_view unit = {};
  std::vector<std::string_view> choices = {};
  std::vector<std::string_view> later = {};  ///< words that are known and not served yet
  double minimum = 0;
  double maximum = 0;                          ///< integer and number
  bool or_share = false;                       ///< of a size: also "80%"
  char short_name = 0;                         ///< 'o' for -o
  std::vector<std::string_view> aliases = {};  ///< other names: "batch-size"
  /// Other words for values, each with what it stands for: {"tf", "tensorflow"}.
  std::vector<std::pair<std::string_view, std::string_view>> synonyms = {};
};

[[nodiscard]] std::span<const OptionSpec> option_table();
[[nodiscard]] const OptionSpec* find_option(std::string_view name);  ///< null: unknown
/// A value as the option's table spells it: a synonym's meaning, else the value itself.
[[nodiscard]] std::string_view canonical_value(const OptionSpec& option, std::string_view value);

}  // namespace stowage
