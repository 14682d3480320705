// Advice that can be typed as printed: another command about the same model, card and settings, in
// its user's own words.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace stowage {

/// A command line as it was typed, told apart into its words.
struct TypedWords {
  std::vector<std::string> positionals;
  std::map<std::string, std::vector<std::string>> options;  ///< by name; a flag's value is ""
};

/// By the settings' names: "host_memory".
struct AdviceChanges {
  std::map<std::string, std::string> set = {};  ///< settings that get another value; "" of a flag
  std::vector<std::string> drop = {};           ///< settings that are left out
  std::vector<std::string> repeat = {};         ///< settings that are kept though they are about
                                                ///< the answer
};

/// "stowage plan net.yaml --gpu rtx3090 --batch 64", quoted for a shell. Of the options those
/// about the model, the step and the card that `command` takes too, in the order of the command's
/// table, with what `changes` sets or keeps.
[[nodiscard]] std::string advice(const TypedWords& typed, std::string_view command,
                                 const AdviceChanges& changes = {});

/// What `command` takes of the words about the model, the step and the card, and of the settings
/// `besides`, by the settings' names: {"gpu_memory", {"8GiB"}}; no value of a flag.
[[nodiscard]] std::map<std::string, std::vector<std::string>> asked_settings(
    const TypedWords& typed, std::string_view command,
    const std::vector<std::string>& besides = {});

}  // namespace stowage
