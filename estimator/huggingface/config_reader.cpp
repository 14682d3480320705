#include "estimator/huggingface/config_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <stdexcept>

#include "estimator/huggingface/default_table.hpp"

namespace stowage {

namespace {

struct ReadDefaults {
  YamlDocument values, names;
};

YamlDocument read_table_text(std::string_view text) {
  auto document =
      read_yaml(std::make_shared<const SourceText>(SourceText{"defaults", std::string(text)}));
  if (!document) throw std::logic_error(render(document.error()));
  return *std::move(document);
}

const ReadDefaults& defaults_of(std::string_view type) {
  static const std::map<std::string_view, ReadDefaults> all = [] {
    std::map<std::string_view, ReadDefaults> read;
    for (const ConfigDefaults& row : config_default_table()) {
      read.emplace(row.model_type,
                   ReadDefaults{read_table_text(row.defaults), read_table_text(row.other_names)});
    }
    return read;
  }();
  return all.at(type);
}

// Keys of every configuration, of older versions too, that no tensor's size depends on, or that are
// read before the family's reader runs: tokens, generation, and notes of whoever saved the file.
constexpr std::array<std::string_view, 83> general_keys{"model_type",
                                                        "architectures",
                                                        "transformers_version",
                                                        "_name_or_path",
                                                        "torch_dtype",
                                                        "dtype",
                                                        "auto_map",
                                                        "quantization_config",
                                                        "num_labels",
                                                        "id2label",
                                                        "label2id",
                                                        "problem_type",
                                                        "finetuning_task",
                                                        "task_specific_params",
                                                        "_attn_implementation",
                                                        "attn_implementation",
                                                        "_attn_implementation_internal",
                                                        "_attn_implementation_autoset",
                                                        "_experts_implementation",
                                                        "experts_implementation",
                                                        "_commit_hash",
                                                        "torchscript",
                                                        "use_bfloat16",
                                                        "use_cache",
                                                        "output_attentions",
                                                        "output_hidden_states",
                                                        "output_past",
                                                        "return_dict",
                                                        "pruned_heads",
                                                        "is_decoder",
                                                        "is_encoder_decoder",
                                                        "tie_encoder_decoder",
                                                        "cross_attention_hidden_size",
                                                        "add_cross_attention",
                                                        "chunk_size_feed_forward",
                                                        "tokenizer_class",
                                                        "prefix",
                                                        "bos_token_id",
                                                        "pad_token_id",
                                                        "eos_token_id",
                                                        "sep_token_id",
                                                        "decoder_start_token_id",
                                                        "max_length",
                                                        "min_length",
                                                        "do_sample",
                                                        "early_stopping",
                                                        "num_beams",
                                                        "num_beam_groups",
                                                        "diversity_penalty",
                                                        "temperature",
                                                        "top_k",
                                                        "top_p",
                                                        "typical_p",
                                                        "repetition_penalty",
                                                        "length_penalty",
                                                        "no_repeat_ngram_size",
                                                        "encoder_no_repeat_ngram_size",
                                                        "bad_words_ids",
                                                        "num_return_sequences",
                                                        "output_scores",
                                                        "return_dict_in_generate",
                                                        "forced_bos_token_id",
                                                        "forced_eos_token_id",
                                                        "remove_invalid_values",
                                                        "exponential_decay_length_penalty",
                                                        "suppress_tokens",
                                                        "begin_suppress_tokens",
                                                        "forced_decoder_ids",
                                                        "tf_legacy_loss",
                                                        "gradient_checkpointing",
                                                        "initializer_range",
                                                        "initializer_factor",
                                                        "init_std",
                                                        "tie_word_embeddings",
                                                        "n_ctx",
                                                        "n_positions",
                                                        "max_position_embeddings",
                                                        "language",
                                                        "position_embedding_type",
                                                        "unk_token_id",
                                                        "cache_implementation",
                                                        "pretraining_tp",
                                                        "use_return_dict"};

bool is_general(std::string_view key) {
  return std::ranges::find(general_keys, key) != general_keys.end();
}

}  // namespace

std::string_view config_class(std::string_view type) {
  for (const ConfigDefaults& row : config_default_table()) {
    if (row.model_type == type) return row.class_name;
  }
  return {};
}

ConfigReader::ConfigReader(const YamlNode& node, std::string type, std::string where,
                           Mistakes& mistakes)
    : node_(node),
      type_(std::move(type)),
      where_(std::move(where)),
      mistakes_(mistakes),
      defaults_(defaults_of(type_).values.root),
      other_names_(defaults_of(type_).names.root) {}

const YamlNode* ConfigReader::written(std::string_view key) {
  asked_.emplace(key);
  if (const YamlNode* value = node_.find(key)) return value;
  for (std::size_t i = 0; i < other_names_->entry_count(); ++i) {
    if (other_names_->value(i).text != key) continue;
    asked_.insert(other_names_->key(i).text);
    if (const YamlNode* value = node_.find(other_names_->key(i).text)) return value;
  }
  return nullptr;
}

const YamlNode* ConfigReader::find(std::string_view key) {
  const YamlNode* value = written(key);
  if (value == nullptr) value = defaults_->find(key);
  return value == nullptr || value->kind == YamlNode::Kind::null ? nullptr : value;
}

Mark ConfigReader::mark_of(std::string_view key) {
  const YamlNode* value = written(key);
  return value != nullptr ? value->mark : node_.mark;
}

void ConfigReader::wrong(std::string_view key, std::string message, std::string hint) {
  mistakes_.error(mark_of(key), std::move(message), std::move(hint));
}

void ConfigReader::warn(std::string_view key, std::string message, std::string hint) {
  mistakes_.warning_once(mark_of(key), std::move(message), std::move(hint));
}

bool ConfigReader::refuse(const YamlNode& value, std::string_view key, std::string_view expected) {
  mistakes_.error(value.mark,
                  fmt::format("'{}{}' must be {}, not {}", where_, key, expected, describe(value)));
  return false;
}

std::optional<std::int64_t> ConfigReader::integer_of(const YamlNode& value, std::string_view key,
                                                     std::int64_t least, std::int64_t most) {
  const std::string expected = fmt::format("an integer from {} to {}", least, most);
  std::int64_t number = 0;
  const char* const end = value.text.data() + value.text.size();
  const bool plain = value.is_scalar() && !value.quoted && !value.text.empty();
  if (plain) {
    const auto [rest, error] = std::from_chars(value.text.data(), end, number);
    if (error == std::errc() && rest == end && number >= least && number <= most) return number;
  }
  refuse(value, key, expected);
  return std::nullopt;
}

std::int64_t ConfigReader::integer(std::string_view key, std::int64_t least, std::int64_t most) {
  const auto value = integer_or_null(key, least, most);
  if (value) return *value;
  const YamlNode* found = find(key);
  if (found == nullptr) {
    wrong(key, fmt::format("'{}{}' must be an integer, and there is none", where_, key));
  }
  return least;
}

std::optional<std::int64_t> ConfigReader::integer_or_null(std::string_view key, std::int64_t least,
                                                          std::int64_t most) {
  const YamlNode* value = find(key);
  if (value == nullptr) return std::nullopt;
  return integer_of(*value, key, least, most).value_or(least);
}

std::vector<std::int64_t> ConfigReader::integers(std::string_view key, std::int64_t least) {
  const YamlNode* value = find(key);
  std::vector<std::int64_t> numbers;
  if (value == nullptr) return numbers;
  if (!value->is_sequence()) {
    refuse(*value, key, "a list of integers");
    return numbers;
  }
  for (const YamlNode* item : value->items) {
    numbers.push_back(integer_of(*item, key, least, largest_size).value_or(least));
  }
  return numbers;
}

double ConfigReader::real(std::string_view key, double least, double most) {
  const auto value = real_or_null(key, least, most);
  if (value) return *value;
  wrong(key, fmt::format("'{}{}' must be a number, and there is none", where_, key));
  return least;
}

std::optional<double> ConfigReader::real_or_null(std::string_view key, double least, double most) {
  const YamlNode* value = find(key);
  if (value == nullptr) return std::nullopt;
  double number = 0;
  const char* const end = value->text.data() + value->text.size();
  if (value->is_scalar() && !value->quoted && !value->text.empty()) {
    const auto [rest, error] = std::from_chars(value->text.data(), end, number);
    if (error == std::errc() && rest == end && std::isfinite(number) && number >= least &&
        number <= most) {
      return number;
    }
  }
  refuse(*value, key, fmt::format("a number from {} to {}", least, most));
  return least;
}

double ConfigReader::probability(std::string_view key) {
  return real_or_null(key, 0, 0.999999).value_or(0);
}

bool ConfigReader::boolean(std::string_view key) {
  const YamlNode* value = find(key);
  if (value == nullptr) return false;
  if (value->is_scalar() && !value->quoted && value->text == "true") return true;
  if (value->is_scalar() && !value->quoted && value->text == "false") return false;
  return refuse(*value, key, "true or false");
}

std::string ConfigReader::word(std::string_view key) {
  const YamlNode* value = find(key);
  if (value == nullptr) return {};
  if (value->is_scalar() && value->quoted) return value->text;
  refuse(*value, key, "a text");
  return {};
}

std::vector<std::string> ConfigReader::words(std::string_view key) {
  const YamlNode* value = find(key);
  std::vector<std::string> texts;
  if (value == nullptr) return texts;
  if (!value->is_sequence()) {
    refuse(*value, key, "a list of texts");
    return texts;
  }
  for (const YamlNode* item : value->items) {
    if (item->is_scalar() && item->quoted) {
      texts.push_back(item->text);
    } else {
      refuse(*item, key, "a list of texts");
    }
  }
  return texts;
}

void ConfigReader::finish() {
  std::vector<std::string_view> known;
  for (std::size_t i = 0; i < defaults_->entry_count(); ++i) {
    known.push_back(defaults_->key(i).text);
  }
  for (std::size_t i = 0; i < node_.entry_count(); ++i) {
    const YamlNode& key = node_.key(i);
    if (asked_.contains(key.text) || is_general(key.text) || defaults_->find(key.text) != nullptr ||
        other_names_->find(key.text) != nullptr) {
      continue;
    }
    mistakes_.warning_once(key.mark,
                           fmt::format("'{}{}' is no key of {} and is not read", where_, key.text,
                                       config_class(type_)),
                           mistakes_.suggest(key.text, known));
  }
}

}  // namespace stowage
