// What `diff` is asked: two plans, or two checks, the second with what --change says.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "answers/question/shell_word.hpp"
#include "cli/options/option.hpp"
#include "cli/options/read_request.hpp"

namespace stowage {

namespace {

/// The words of a check of `model` with these options. `changes`: options that have another value;
/// "" leaves one out.
Result<std::vector<std::string>> check_words(const std::string& model, const TypedWords& typed,
                                             const std::map<std::string, std::string>& changes) {
  const CommandSpec& check = *find_command("check");
  std::vector<std::string> words{model};
  const auto is_of_check = [&](std::string_view name) {
    return std::ranges::find(check.options, name) != check.options.end();
  };
  const auto add = [&](const std::string& name, const std::string& value) {
    const OptionSpec* option = find_option(name);
    const bool is_flag = option != nullptr && option->type == OptionType::flag;
    words.push_back(is_flag ? fmt::format("--{}", name) : fmt::format("--{}={}", name, value));
  };
  for (const auto& [name, values] : typed.options) {
    if (!is_of_check(name) || changes.contains(name)) continue;
    for (const std::string& value : values) add(name, value);
    if (values.empty()) add(name, "");
  }
  Diagnostics mistakes;
  for (const auto& [name, value] : changes) {
    if (value.empty()) continue;
    const OptionSpec* option = find_option(name);
    if (option != nullptr && option->type == OptionType::flag && value != "true") {
      mistakes.push_back(command_line_error(
          fmt::format("--change {}={}: --{} takes no value", name, value, name),
          fmt::format("--change {0}=true has it, --change {0}= leaves it out", name)));
    }
    add(name, value);
  }
  if (!mistakes.empty()) return tl::unexpected(std::move(mistakes));
  return words;
}

Result<CheckQuestion> read_side(const std::string& model, const TypedWords& typed,
                                const std::map<std::string, std::string>& changes) {
  const auto words = check_words(model, typed, changes);
  if (!words) return tl::unexpected(words.error());
  const auto arguments = parse_arguments(*find_command("check"), *words);
  if (!arguments) return tl::unexpected(arguments.error());
  auto request = read_check_request(*arguments);
  if (!request) return tl::unexpected(std::move(request.error()));
  if (auto* question = std::get_if<CheckQuestion>(&request->question)) return std::move(*question);
  const bool serves = std::holds_alternative<ServingQuestion>(request->question);
  return failure(command_line_error(
      serves ? "two steps are compared, and --context-length asks about serving"
             : "one model on one card is compared with another",
      "stowage check has a table of several models and cards, and serving's passes"));
}

Result<DiffRequest> read_check_diff(const Arguments& arguments) {
  const std::vector<std::string>& models = arguments.positionals();
  const TypedWords typed = arguments.typed();
  std::map<std::string, std::string> changes;
  for (auto& [name, value] : arguments.assignments("change")) {
    std::string option = name;
    std::ranges::replace(option, '_', '-');
    changes.insert_or_assign(std::move(option), value);
  }
  if (models.size() == 1 && changes.empty()) {
    return failure(command_line_error("nothing is compared with one model",
                                      "give a second one, or --change NAME=VALUE"));
  }
  if (models.size() == 2 && models[0] == "-" && models[1] == "-") {
    return failure(command_line_error("both models cannot come from stdin"));
  }
  auto before = read_side(models.front(), typed, {});
  if (!before) return tl::unexpected(std::move(before.error()));
  auto after = read_side(models.back(), typed, changes);
  if (!after) return tl::unexpected(std::move(after.error()));
  return DiffRequest{.question = CheckDiffQuestion{*std::move(before), *std::move(after)},
                     .verbose = arguments.flag("verbose")};
}

}  // namespace

Result<DiffRequest> read_diff_request(const Arguments& arguments) {
  if (arguments.given("gpu") || arguments.given("gpu-memory")) return read_check_diff(arguments);
  const std::vector<std::string>& plans = arguments.positionals();
  for (const auto& [name, values] : arguments.typed().options) {
    if (name == "verbose" || name == "format") continue;
    return failure(command_line_error(
        fmt::format("--{} is about two checks, and no card is named", name),
        "--gpu NAME compares what two steps take; without options two plans are compared"));
  }
  if (plans.size() < 2) {
    return failure(command_line_error("two plans are compared, and one is named",
                                      "stowage diff BEFORE.yaml AFTER.yaml"));
  }
  const auto is_no_file = [](const std::string& plan) {
    std::error_code ignored;
    return plan != "-" && !std::filesystem::exists(plan, ignored);
  };
  if (std::ranges::all_of(plans, is_no_file)) {
    return failure(command_line_error(
        fmt::format("there is no file '{}', and models are compared on a card", plans[0]),
        fmt::format("stowage diff {} {} --gpu NAME", shell_word(plans[0]), shell_word(plans[1]))));
  }
  if (plans[0] == "-" && plans[1] == "-") {
    return failure(command_line_error("both plans cannot come from stdin"));
  }
  return DiffRequest{.question = DiffQuestion{.before = plans[0], .after = plans[1]},
                     .verbose = arguments.flag("verbose")};
}

}  // namespace stowage
