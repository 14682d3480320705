// OtherWord: an option of other tools (transformers' Trainer and TRL, accelerate, timm, Lightning,
// scripts with argparse), and what it is here.
//
// Where it has one meaning, it is read as the option of that meaning: "--bf16" is --precision
// amp-bf16, "--per_device_train_batch_size=8" is --batch 8. Other words get a hint that says what
// to type. Any option may be written with '_' for '-'.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/options/command.hpp"
#include "estimator/base/diagnostic.hpp"

namespace stowage {

struct OtherWord {
  std::string_view name;         ///< without dashes, with '-' for '_': "gradient-checkpointing"
  std::string_view option = {};  ///< what it is here; "": it is only explained
  /// Of a switch: the option's value where it is on. "": the word's own value is the option's.
  std::string_view on = {};
  /// Values that are others here; "" for those that leave the option out.
  std::vector<std::pair<std::string_view, std::string_view>> values = {};
  std::string_view hint = {};  ///< of a word that is only explained
};

[[nodiscard]] std::span<const OtherWord> other_words();

/// The words with `command`'s own options in the place of other tools' and of other spellings, and
/// with optimizers' names as the table has them. What is not known stays as it is.
[[nodiscard]] std::vector<std::string> in_own_words(const CommandSpec& command,
                                                    std::span<const std::string> words);

/// The hint for an option that `command` does not know; "": there is nothing to say. `name`:
/// without dashes and value.
[[nodiscard]] std::string hint_for_other_word(const CommandSpec& command, std::string_view name);

}  // namespace stowage
