#include "cli/options/planned_question.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "answers/planning/plan_question.hpp"
#include "cli/options/command.hpp"
#include "cli/options/option.hpp"
#include "cli/options/read_request.hpp"
#include "cli/options/setting_names.hpp"
#include "estimator/base/printable.hpp"
#include "estimator/document/fields.hpp"

namespace stowage {

namespace {

namespace fs = std::filesystem;

using OptionValues = std::map<std::string, std::vector<std::string>>;

constexpr std::string_view asked_by = "plan";

/// Whether a plan's file holds the word as it is.
bool can_be_kept(const std::string& word) {
  return word.size() <= longest_recorded_name && printable_line(word) == word;
}

bool may_name_file(const OptionSpec& option) {
  return option.name == "gpu" || option.value == "FILE" || option.value == "DIR";
}

/// Whether the word names a file or a model's folder, and no card or shipped model.
bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) || fs::exists(path / "config.json", ignored);
}

/// The folder in which a plan lies, or is to lie.
fs::path folder_of(const std::string& plan) {
  std::error_code ignored;
  return fs::absolute(plan, ignored).lexically_normal().parent_path();
}

/// "./step.json" of a file that is there; any other word, and a path from the root, as it is.
std::string named_from_folder(const std::string& word, const std::string& plan) {
  std::error_code ignored;
  const fs::path path(word);
  if (plan == "-" || path.is_absolute() || !is_there(path)) return word;
  const fs::path relative =
      fs::absolute(path, ignored).lexically_normal().lexically_relative(folder_of(plan));
  if (relative.empty()) return word;
  const std::string text = relative.generic_string();
  return text.starts_with("..") ? text : "./" + text;
}

bool is_named_from_folder(std::string_view word) {
  return word.starts_with("./") || word.starts_with("../");
}

/// The path from where the program runs; other words as they are.
std::string found_from_folder(const std::string& word, const std::string& plan) {
  if (!is_named_from_folder(word)) return word;
  const fs::path folder = fs::path(plan).parent_path();
  return (folder / word).lexically_normal().generic_string();
}

tl::unexpected<Diagnostics> wrong_question(const NamedPytorchPlan& named, std::string message,
                                           std::string hint = {}) {
  return failure(Diagnostic{
      .message = std::move(message), .span = {.source = named.source}, .hint = std::move(hint)});
}

/// The option's values, whose files are there.
Result<std::vector<std::string>> found_values(const NamedPytorchPlan& named,
                                              const OptionSpec& option,
                                              const std::vector<std::string>& values) {
  if (!may_name_file(option)) return values;
  std::vector<std::string> found;
  for (const std::string& value : values) {
    found.push_back(found_from_folder(value, named.source->name));
    std::error_code ignored;
    if (!is_named_from_folder(value) || fs::exists(found.back(), ignored)) continue;
    return wrong_question(named,
                          fmt::format("the plan was made with --{} {}, and there is no '{}'",
                                      option.name, value, found.back()),
                          "it is looked for from the plan's own folder");
  }
  return found;
}

/// The question's settings as options of `command`, but those that it does not take.
Result<OptionValues> options_of(const NamedPytorchPlan& named, const CommandSpec& command) {
  const CommandSpec& all = *find_command(asked_by);
  OptionValues given;
  for (const auto& [setting, values] : named.plan.question->settings) {
    const std::string option = option_word(setting);
    const bool is_known = std::ranges::find(all.options, option) != all.options.end();
    if (!is_known || (find_option(option)->type == OptionType::flag) != values.empty()) {
      return wrong_question(
          named, fmt::format("the plan's question has a setting '{}' {}", setting,
                             is_known ? "without a value, or with one that it does not take"
                                      : "that is not known"));
    }
    if (std::ranges::find(command.options, option) == command.options.end()) continue;
    auto found = found_values(named, *find_option(option), values);
    if (!found) return tl::unexpected(std::move(found.error()));
    given[option] = *std::move(found);
  }
  return given;
}

Result<std::string> model_of(const NamedPytorchPlan& named, const std::string& moved,
                             std::string_view hint) {
  if (!moved.empty()) return moved;
  const std::string& model = named.plan.question->model;
  std::string found = found_from_folder(model, named.source->name);
  std::error_code ignored;
  if (!is_named_from_folder(model) || fs::exists(found, ignored)) return found;
  return wrong_question(
      named, fmt::format("the plan was made of '{}', and there is no '{}'", model, found),
      std::string(hint));
}

Result<Arguments> words_of(const NamedPytorchPlan& named, std::string_view command,
                           const std::string& moved, const Arguments& typed,
                           const OptionValues& besides, std::string_view hint) {
  if (!named.plan.question) {
    return wrong_question(
        named,
        "the plan does not say of which file or model it was made, so that nothing can be "
        "sized",
        "stowage plan writes that into a plan of a file or of a model that is named");
  }
  auto model = model_of(named, moved, hint);
  if (!model) return tl::unexpected(std::move(model.error()));
  auto given = options_of(named, *find_command(command));
  if (!given) return tl::unexpected(std::move(given.error()));
  if (const auto configs = typed.text("configs")) (*given)["configs"] = {*configs};
  for (const auto& [option, values] : besides) (*given)[option] = values;
  return read_values(*find_command(command), *given, {*std::move(model)});
}

}  // namespace

std::optional<PlannedQuestion> asked_question(const TypedWords& typed, const std::string& plan) {
  PlannedQuestion question{.model = named_from_folder(typed.positionals.front(), plan),
                           .settings = asked_settings(typed, asked_by, {"host", "host_memory"})};
  question.settings.erase("batch");
  bool is_kept = question.model != "-" && !question.model.empty() && can_be_kept(question.model);
  for (auto& [setting, values] : question.settings) {
    if (may_name_file(*find_option(option_word(setting)))) {
      for (std::string& value : values) value = named_from_folder(value, plan);
    }
    is_kept = is_kept && std::ranges::all_of(values, can_be_kept);
  }
  return is_kept ? std::optional(std::move(question)) : std::nullopt;
}

Result<Arguments> words_of(const NamedPytorchPlan& named, std::string_view command,
                           const Arguments& typed) {
  return words_of(named, command, {}, typed, {}, "it is looked for from the plan's own folder");
}

Result<PlanQuestion> question_of_plan(const NamedPytorchPlan& named, const std::string& moved,
                                      const Arguments& typed) {
  const std::int64_t batch = named.plan.batch * named.plan.micro_batches;
  const auto words = words_of(named, asked_by, moved, typed,
                              {{"for", {"pytorch"}}, {"batch", {fmt::format("{}", batch)}}},
                              "it is looked for from the plan's own folder; --step FILE names it "
                              "where it lies now");
  if (!words) return tl::unexpected(words.error());
  return read_planning_request(*words).map(
      [](PlanningRequest&& request) { return std::move(request.question); });
}

}  // namespace stowage
