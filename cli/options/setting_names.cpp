#include "cli/options/setting_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "answers/question/question_error.hpp"
#include "cli/options/arguments.hpp"
#include "cli/options/option.hpp"

namespace stowage {

std::string_view in_options(Cure cure) {
  switch (cure) {
    case Cure::smaller_batch:
      return "give a smaller --batch";
    case Cure::larger_batch:
      return "give a larger --batch";
    case Cure::number_of_gpus:
      return "say how many there are: --gpus N";
    case Cure::inference:
      return "use --mode inference";
    case Cure::pytorch_kernels:
      return "use --runtime pytorch";
    case Cure::stowage_kernels:
      return "make it with --runtime stowage to have it executed";
    case Cure::contiguous_layout:
      return "use --layout nchw";
    case Cure::no_rule_of_thumb:
      return "leave out --rule-of-thumb";
    case Cure::described_card:
      return "'stowage gpus' lists the known ones; a card file or --gpu-memory takes others";
    case Cure::tensors_alone:
      return "the tensors alone: --runtime ideal --gpu-memory";
    case Cure::own_total:
      return "--gpu-memory SIZE takes yours";
    case Cure::host_execution:
      return "--on host executes the plan on the CPU";
    case Cure::cuda_libraries:
      return "an environment with PyTorch has it: activate it, or --cuda-libraries DIR names it";
    case Cure::sequence_length:
      return "--seq N gives it one";
    case Cure::dimension_size:
      return "--set NAME=N gives it a size, --set NAME=batch makes it the batch";
    case Cure::one_attention_call:
      return "a config.json of an older transformers has it with --set attention=sdpa";
    case Cure::adapters:
      return "give --lora";
    case Cure::quantised_base:
      return "give --base";
    case Cure::another_loss:
      return "--loss NAME takes another; --loss none: inference";
    case Cure::results_apart:
      return "--set in_place=false makes every layer's result its own";
    case Cure::growing_cache:
      return "--cache dynamic grows by each token, and has no such mask";
    case Cure::cache_as_computed:
      return "--cache dynamic without --kv-dtype keeps keys and values as the model computes them";
    case Cure::quantised_cache:
      return "--cache quantized stores it";
    case Cure::library_version:
      return "--set transformers=VERSION runs it as another version does";
    case Cure::layer_size:
      return "--set LAYER=64x64x3 states it, without the batch";
    case Cure::tensorflow_runtime:
      return "--runtime tensorflow sizes it as TensorFlow runs it";
    case Cure::count_unknown:
      return "--allow-unknown counts them by the sizes of their outputs";
  }
  return "";
}

std::string option_word(std::string_view setting) {
  std::string word(setting);
  std::ranges::replace(word, '_', '-');
  return word;
}

namespace {

/// The option of a setting; empty: there is none.
std::string option_of(std::string_view setting) {
  const std::string name = option_word(setting);
  return find_option(name) == nullptr ? std::string() : "--" + name;
}

/// Whether a setting may be named there: a word by itself, and no part of a user's own text, which
/// messages put between quotes.
bool stands_alone(std::string_view text, std::size_t open, std::size_t close) {
  constexpr std::string_view before = " (\n", after = " ,:;.)\n";
  return (open == 0 || before.find(text[open - 1]) != before.npos) &&
         (close + 1 == text.size() || after.find(text[close + 1]) != after.npos);
}

/// Each "`eval_batch`" as "--eval-batch"; other words between backquotes stay.
std::string settings_in_options(std::string_view text) {
  std::string spelled;
  std::size_t begin = 0;
  while (true) {
    const std::size_t open = text.find('`', begin);
    const std::size_t close = open == text.npos ? text.npos : text.find('`', open + 1);
    if (close == text.npos) return spelled.append(text.substr(begin));
    spelled += text.substr(begin, open - begin);
    const std::string option = stands_alone(text, open, close)
                                   ? option_of(text.substr(open + 1, close - open - 1))
                                   : std::string();
    // The second backquote of what is no setting may be the first of one that is.
    spelled += option.empty() ? std::string(text.substr(open, close - open)) : option;
    begin = option.empty() ? close : close + 1;
  }
}

}  // namespace

std::string in_options(std::string text) {
  for (int i = 0; i < cure_count; ++i) {
    const auto cure = static_cast<Cure>(i);
    const auto at = text.find(in_words(cure));
    if (at != std::string::npos) text.replace(at, in_words(cure).size(), in_options(cure));
  }
  return settings_in_options(text);
}

namespace {

// What a question, and the readers of descriptions, call what comes from outside.
void name_option(SourceTextPtr& source) {
  if (!source) return;
  if (source->name == question_place) source = command_line_error("").span.source;
  for (const auto& [place, option] :
       {std::pair("<arguments>", "<option --set>"), std::pair("<seq>", "<option --seq>")}) {
    if (source->name != place) continue;
    source = std::make_shared<const SourceText>(SourceText{option, source->text});
    return;
  }
}

}  // namespace

Diagnostics in_options(Diagnostics diagnostics) {
  for (Diagnostic& diagnostic : diagnostics) {
    diagnostic.message = in_options(std::move(diagnostic.message));
    diagnostic.hint = in_options(std::move(diagnostic.hint));
    name_option(diagnostic.span.source);
    diagnostic.notes = in_options(std::move(diagnostic.notes));
  }
  return diagnostics;
}

}  // namespace stowage
