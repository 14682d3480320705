#include "estimator/huggingface/stated_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "estimator/huggingface/quantised_weights.hpp"

namespace stowage {

namespace {

struct HeadWord {
  std::string_view ending;  ///< of a class's name
  Head head;
};

constexpr std::array<HeadWord, 9> head_words{{
    {"ForCausalLM", Head::causal_lm},
    {"LMHeadModel", Head::causal_lm},
    {"ForMaskedLM", Head::masked_lm},
    {"ForSequenceClassification", Head::sequence_classification},
    {"ForTokenClassification", Head::token_classification},
    {"ForQuestionAnswering", Head::question_answering},
    {"ForConditionalGeneration", Head::conditional_generation},
    {"ForImageClassification", Head::image_classification},
    {"Model", Head::none},
}};

constexpr std::array all_heads{Head::none,
                               Head::causal_lm,
                               Head::masked_lm,
                               Head::sequence_classification,
                               Head::token_classification,
                               Head::question_answering,
                               Head::conditional_generation,
                               Head::image_classification};

tl::unexpected<Diagnostics> wrong_value(std::string_view name, std::string_view value,
                                        const std::string& expected) {
  return failure(fmt::format("the argument '{}' takes {}, not '{}'", name, expected, value));
}

std::string head_list(const Family& family) {
  std::vector<std::string_view> names;
  for (const Head head : family.heads) names.push_back(to_string(head));
  return fmt::format("{}", fmt::join(names, ", "));
}

bool reads_head(const Family& family, Head head) {
  return std::ranges::find(family.heads, head) != family.heads.end();
}

/// The head of the class in `architectures`; without a class, the family's first.
Head head_of_class(ConfigReader& config, const Family& family) {
  const std::vector<std::string> classes = config.words("architectures");
  if (classes.empty()) return family.heads.front();
  for (const HeadWord& word : head_words) {
    if (!classes.front().ends_with(word.ending)) continue;
    // "LlamaForRewardModel" has a head.
    if (word.head == Head::none && classes.front().find("For") != std::string::npos) break;
    if (reads_head(family, word.head)) return word.head;
    break;
  }
  config.wrong("architectures",
               fmt::format("the head of '{}' is not one of those that are read of {}",
                           classes.front(), family.type),
               fmt::format("the argument 'head' takes another: {}", head_list(family)));
  return family.heads.front();
}

std::string class_of(const ConfigReader& config, const Family& family, Head head) {
  if (config.type() == "gpt2" && head == Head::causal_lm) return "GPT2LMHeadModel";
  for (const HeadWord& word : head_words) {
    if (word.head == head) return fmt::format("{}{}", family.class_prefix, word.ending);
  }
  return std::string(family.class_prefix);
}

std::string checkpoint_precision(ConfigReader& config) {
  for (const std::string_view key : {"dtype", "torch_dtype"}) {
    if (config.written(key) == nullptr) continue;
    const std::string name = config.word(key);
    if (name == "bfloat16" || name == "torch.bfloat16") return "bf16";
    if (name == "float16" || name == "torch.float16") return "fp16";
    if (name == "float64" || name == "torch.float64") return "fp64";
    if (name.empty() || name == "float32" || name == "torch.float32" || name == "auto")
      return "fp32";
    config.warn(key, fmt::format("weights in '{}' are not read; the step is sized in fp32", name));
  }
  return {};
}

/// The one rule of the format in which weights are loaded where none is asked for: a server with a
/// paged cache and transformers from 5.0 on take the checkpoint's; transformers before takes
/// float32, or what the quantisation asks for.
void choose_loaded_precision(ConfigReader& config, StatedSettings& stated) {
  const std::string checkpoint = checkpoint_precision(config);
  const bool takes_checkpoint =
      stated.attention.is_paged || loads_checkpoint_format(stated.version);
  QuantisedWeights quantised = read_quantised_weights(
      config, {.version = stated.version, .is_paged = stated.attention.is_paged});
  stated.precision = takes_checkpoint ? checkpoint : std::string();
  if (!quantised.precision.empty()) stated.precision = quantised.precision;
  if (stated.precision.empty() && (checkpoint == "bf16" || checkpoint == "fp16")) {
    stated.unused_precision = checkpoint;
  }
  stated.stored = std::move(quantised.stored);
}

std::int64_t label_count(ConfigReader& config) {
  config.pass_over("id2label");
  if (const YamlNode* labels = config.written("id2label")) {
    if (labels->is_mapping()) {
      return std::max<std::int64_t>(static_cast<std::int64_t>(labels->entry_count()), 1);
    }
  }
  return config.written("num_labels") != nullptr ? config.integer("num_labels") : 2;
}

std::optional<std::string> given(const ImportOptions& options, const std::string& name) {
  const auto found = options.values.find(name);
  if (found == options.values.end()) return std::nullopt;
  return found->second;
}

}  // namespace

Result<StatedSettings> stated_settings(ConfigReader& config, const Family& family,
                                       const ImportOptions& options) {
  StatedSettings stated;
  // The version: the command line's, the file's, the newest.
  if (const auto text = given(options, "transformers")) {
    const auto version = parse_library_version(*text);
    if (!version) return wrong_value("transformers", *text, "a version such as 4.57");
    stated.version = *version;
    stated.version_source = ", as asked for";
    stated.is_version_asked = true;
  } else if (config.written("transformers_version") != nullptr &&
             !config.word("transformers_version").empty()) {
    const std::string text = config.word("transformers_version");
    if (const auto version = parse_library_version(text)) {
      stated.version = *version;
      stated.version_source = ", which the file states";
    } else {
      config.wrong("transformers_version", fmt::format("'{}' is no version", text));
    }
  }
  if (const auto text = given(options, "head")) {
    const auto* const head = std::ranges::find_if(
        all_heads, [&](Head one) { return to_string(one) == *text && reads_head(family, one); });
    if (head == all_heads.end()) return wrong_value("head", *text, head_list(family));
    stated.head = *head;
  } else {
    stated.head = head_of_class(config, family);
  }
  auto attention = chosen_attention(config, family, stated.version, options);
  if (!attention) return tl::unexpected(std::move(attention.error()));
  stated.attention = *std::move(attention);
  stated.class_name = class_of(config, family, stated.head);
  choose_loaded_precision(config, stated);
  stated.labels = label_count(config);
  return stated;
}

void declare_settings(DescriptionText& text, const StatedSettings& stated, const Family& family) {
  text.argument("attention",
                stated.attention.function == AttentionFunction::eager ? "eager" : "sdpa");
  text.argument("transformers", to_string(stated.version));
  if (family.has_heads) text.argument("head", std::string(to_string(stated.head)));
  std::string train =
      "optimizer: adamw, learning_rate: 5e-5, weight_decay: 0.0, loss_in_model: true";
  if (!stated.precision.empty() && stated.precision != "fp32") {
    train += fmt::format(", precision: {}", stated.precision);
  }
  text.train(std::move(train));
}

}  // namespace stowage
