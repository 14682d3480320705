#include <algorithm>
#include <string>

#include "cli/options/fine_tuning_options.hpp"
#include "cli/options/option.hpp"
#include "cli/options/option_records.hpp"
#include "cli/options/serving_option_table.hpp"
#include "cli/options/sharding_options.hpp"
#include "estimator/base/name_match.hpp"

namespace stowage {

namespace {

const std::vector<OptionSpec>& all_options() {
  static const std::vector<OptionSpec> options = [] {
    std::vector<OptionSpec> all;
    for (const std::vector<OptionSpec>& part :
         {model_options(), card_options(), plan_options(), fine_tuning_options(), serving_options(),
          sharding_options()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return options;
}

bool is_choice(const OptionSpec& option, std::string_view value) {
  return std::ranges::find(option.choices, value) != option.choices.end();
}

}  // namespace

std::string_view to_string(OptionGroup group) {
  switch (group) {
    case OptionGroup::model:
      return "The model";
    case OptionGroup::training:
      return "The step";
    case OptionGroup::device:
      return "The card and the runtime";
    case OptionGroup::planning:
      return "The plan";
    case OptionGroup::validation:
      return "Validation";
    case OptionGroup::output:
      return "Output";
  }
  return "";
}

std::span<const OptionSpec> option_table() { return all_options(); }

std::string_view canonical_value(const OptionSpec& option, std::string_view value) {
  for (const auto& [word, meaning] : option.synonyms) {
    if (word == value) return meaning;
  }
  if (option.type != OptionType::choice || is_choice(option, value)) return value;
  // "BF16", "PyTorch": a choice in another case.
  for (const std::string_view choice : option.choices) {
    if (lower_case(choice) == lower_case(value)) return choice;
  }
  for (const auto& [word, meaning] : option.synonyms) {
    if (word == lower_case(value)) return meaning;
  }
  return value;
}

const OptionSpec* find_option(std::string_view name) {
  const auto found = std::find_if(all_options().begin(), all_options().end(),
                                  [&](const OptionSpec& option) { return option.name == name; });
  return found == all_options().end() ? nullptr : &*found;
}

}  // namespace stowage
