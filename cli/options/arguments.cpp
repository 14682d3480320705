#include "cli/options/arguments.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "cli/options/option.hpp"
#include "estimator/base/quantity.hpp"

namespace stowage {

namespace {

std::optional<double> read_number(std::string_view text) {
  const auto value = parse_number<double>(text);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

using Mistake = std::optional<Diagnostic>;

Mistake check_integer(const OptionSpec& option, std::string_view text) {
  const auto value = parse_number<std::int64_t>(text);
  const auto minimum = static_cast<std::int64_t>(option.minimum);
  const auto maximum = static_cast<std::int64_t>(option.maximum);
  if (!value) {
    // "1e9" or "2.5": a number, and not one that counts anything.
    return command_line_error(
        fmt::format("--{} takes a whole number, and '{}' is not one", option.name, text),
        fmt::format("write it in digits, {} to {}", minimum, maximum));
  }
  if (*value < minimum || *value > maximum) {
    return command_line_error(fmt::format("--{} {} is out of range; it takes {} to {}", option.name,
                                          *value, minimum, maximum));
  }
  return std::nullopt;
}

Mistake check_number(const OptionSpec& option, std::string_view text) {
  const auto value = read_number(text);
  if (!value) {
    return command_line_error(
        fmt::format("--{} takes a number, and '{}' is not one", option.name, text));
  }
  if (*value < option.minimum || *value > option.maximum) {
    return command_line_error(fmt::format("--{} {} is out of range; it takes {} to {}", option.name,
                                          text, option.minimum, option.maximum));
  }
  return std::nullopt;
}

Mistake check_choice(const OptionSpec& option, std::string_view text) {
  const auto is = [&](std::string_view word) { return word == text; };
  if (std::any_of(option.choices.begin(), option.choices.end(), is)) return std::nullopt;
  const std::string offered =
      fmt::format("--{} takes {}", option.name, fmt::join(option.choices, ", "));
  if (std::any_of(option.later.begin(), option.later.end(), is)) {
    return command_line_error(fmt::format("--{} {} is not supported yet", option.name, text),
                              offered);
  }
  std::string hint = did_you_mean(text, option.choices);
  return command_line_error(fmt::format("--{} does not know '{}'", option.name, text),
                            hint.empty() ? offered : hint);
}

std::optional<double> share_of(std::string_view text) {
  if (!text.ends_with('%')) return std::nullopt;
  const auto percent = parse_number<double>(text.substr(0, text.size() - 1));
  if (!percent || !(*percent > 0) || *percent > 100) return std::nullopt;
  return *percent / 100;
}

Mistake check_share(const OptionSpec& option, std::string_view text) {
  if (share_of(text)) return std::nullopt;
  return command_line_error(
      fmt::format("--{} takes more than 0 % and at most 100 %, not '{}'", option.name, text));
}

Mistake check_value(const OptionSpec& option, std::string_view text) {
  switch (option.type) {
    case OptionType::flag:
      return std::nullopt;
    case OptionType::integer:
      return check_integer(option, text);
    case OptionType::number:
      return check_number(option, text);
    case OptionType::choice:
      return check_choice(option, text);
    case OptionType::size: {
      if (option.or_share && text.ends_with('%')) return check_share(option, text);
      const auto bytes = parse_bytes(text);
      if (bytes) return std::nullopt;
      const Diagnostic& what = bytes.error().front();
      return command_line_error(fmt::format("--{}: {}", option.name, what.message), what.hint);
    }
    case OptionType::text:
      if (!text.empty()) return std::nullopt;
      return command_line_error(fmt::format("--{} is empty", option.name));
    case OptionType::assignment:
      if (text.find('=') != std::string_view::npos && text.front() != '=') return std::nullopt;
      return command_line_error(
          fmt::format("--{} takes {}, and '{}' is not that", option.name, option.value, text));
  }
  return std::nullopt;
}

}  // namespace

Format format_for_mistakes(std::span<const std::string> words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool next = words[i] == "--format" && i + 1 < words.size() && words[i + 1] == "json";
    if (next || words[i] == "--format=json") return Format::json;
  }
  return Format::table;
}

Diagnostic command_line_error(std::string message, std::string hint) {
  static const auto source =
      std::make_shared<const SourceText>(SourceText{.name = "<command line>", .text = ""});
  return Diagnostic{
      .message = std::move(message), .span = {.source = source}, .hint = std::move(hint)};
}

Result<Arguments> read_values(const CommandSpec& command,
                              const std::map<std::string, std::vector<std::string>>& given,
                              std::vector<std::string> positionals) {
  Diagnostics mistakes;
  Arguments arguments;
  for (const auto& [name, typed] : given) {
    const OptionSpec* option = find_option(name);
    std::vector<std::string> values;
    for (const std::string& value : typed) values.emplace_back(canonical_value(*option, value));
    if (values.size() > 1 && option->type != OptionType::assignment) {
      mistakes.push_back(command_line_error(fmt::format("--{} is given twice", name)));
      continue;
    }
    std::set<std::string> names;  // of assignments
    for (const std::string& value : values) {
      if (auto mistake = check_value(*option, value)) {
        mistakes.push_back(*std::move(mistake));
      } else if (option->type == OptionType::assignment) {
        const std::string assigned = value.substr(0, value.find('='));
        if (names.insert(assigned).second) continue;
        mistakes.push_back(
            command_line_error(fmt::format("--{} {} is given twice", name, assigned)));
      }
    }
    arguments.given_[name] = values;
  }

  const std::size_t most = command.positionals.size();
  if (positionals.size() > most && (most == 0 || !command.positionals.back().repeats)) {
    mistakes.push_back(command_line_error(
        most == 0 ? fmt::format("'{}' is one argument too many; stowage {} takes options only",
                                positionals[0], command.name)
                  : fmt::format("'{}' is one argument too many", positionals[most])));
  }
  for (std::size_t i = positionals.size(); i < most; ++i) {
    const PositionalSpec& missing = command.positionals[i];
    if (!missing.required) break;
    mistakes.push_back(command_line_error(
        fmt::format("{} is missing: {}", missing.name, missing.help),
        command.examples.empty() ? "" : fmt::format("for example: {}", command.examples[0])));
  }
  arguments.positionals_ = std::move(positionals);
  if (!mistakes.empty()) return tl::unexpected(std::move(mistakes));
  return arguments;
}

bool Arguments::given(std::string_view option) const { return given_.find(option) != given_.end(); }

std::optional<std::string> Arguments::text(std::string_view option) const {
  if (const auto found = given_.find(option); found != given_.end()) return found->second.front();
  const OptionSpec* spec = find_option(option);
  if (spec == nullptr || spec->default_value.empty()) return std::nullopt;
  return std::string(spec->default_value);
}

bool Arguments::flag(std::string_view option) const { return given(option); }

std::optional<std::int64_t> Arguments::integer(std::string_view option) const {
  const auto value = text(option);
  return value ? parse_number<std::int64_t>(*value) : std::nullopt;
}

std::optional<double> Arguments::number(std::string_view option) const {
  const auto value = text(option);
  return value ? read_number(*value) : std::nullopt;
}

std::optional<Bytes> Arguments::size(std::string_view option) const {
  const auto value = text(option);
  if (!value) return std::nullopt;
  const auto bytes = parse_bytes(*value);
  return bytes ? std::optional(*bytes) : std::nullopt;
}

std::optional<double> Arguments::share(std::string_view option) const {
  const auto value = text(option);
  return value ? share_of(*value) : std::nullopt;
}

std::map<std::string, std::string> Arguments::assignments(std::string_view option) const {
  std::map<std::string, std::string> all;
  if (const auto found = given_.find(option); found != given_.end()) {
    for (const std::string& entry : found->second) {
      const std::size_t equals = entry.find('=');
      all[entry.substr(0, equals)] = entry.substr(equals + 1);
    }
  }
  return all;
}

TypedWords Arguments::typed() const {
  return {.positionals = positionals_, .options = {given_.begin(), given_.end()}};
}

}  // namespace stowage
