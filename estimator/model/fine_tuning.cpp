#include "estimator/model/fine_tuning.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <functional>
#include <span>

#include "estimator/base/quantity.hpp"
#include "estimator/model/layer_match.hpp"

namespace stowage {

namespace {

constexpr std::int64_t most_rank = 1'000'000;
constexpr std::size_t longest_quoted = 60;
constexpr std::size_t most_patterns = 64;
constexpr std::int64_t most_chunks = 1024;
constexpr std::int64_t most_least_bytes = std::int64_t{1} << 40;

struct Setting {
  std::string_view key, value;  // value empty and no '=': a word alone
  bool has_value = false;
};

std::vector<std::string_view> cut(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

std::string in_quotes(std::string_view text) {
  return fmt::format("'{}'", text.substr(0, longest_quoted));
}

/// "a=1,b,c=2" as settings. Errors: too long, an empty part, a key twice.
Result<std::vector<Setting>> settings_of(std::string_view text) {
  if (text.empty()) return failure("nothing is said");
  if (text.size() > longest_fine_tuning_text) {
    return failure(fmt::format("it is longer than {} bytes", longest_fine_tuning_text));
  }
  std::vector<Setting> settings;
  for (const std::string_view part : cut(text, ',')) {
    const std::size_t equals = part.find('=');
    Setting setting{.key = part.substr(0, equals)};
    if (equals != std::string_view::npos) {
      setting.value = part.substr(equals + 1);
      setting.has_value = true;
    }
    if (setting.key.empty() || (setting.has_value && setting.value.empty())) {
      return failure(fmt::format("{} is no setting", in_quotes(part)), "settings are key=value");
    }
    for (const Setting& earlier : settings) {
      if (earlier.key == setting.key) {
        return failure(fmt::format("{} is said twice", in_quotes(setting.key)));
      }
    }
    settings.push_back(setting);
  }
  return settings;
}

tl::unexpected<Diagnostics> unknown_setting(std::string_view key,
                                            std::span<const std::string_view> known) {
  std::string hint = did_you_mean(key, known);
  if (hint.empty()) hint = fmt::format("it takes {}", fmt::join(known, ", "));
  return failure(fmt::format("unknown setting {}", in_quotes(key)), std::move(hint));
}

tl::unexpected<Diagnostics> unsuitable(const Setting& setting, std::string_view takes) {
  return failure(
      fmt::format("'{}' takes {}, not {}", setting.key, takes,
                  setting.has_value ? in_quotes(setting.value) : std::string("nothing")));
}

/// use_dora or use_dora=true.
std::optional<bool> truth_of(const Setting& setting) {
  if (!setting.has_value || setting.value == "true") return true;
  if (setting.value == "false") return false;
  return std::nullopt;
}

std::optional<double> number_of(const Setting& setting, double least, double most) {
  const auto number = setting.has_value ? parse_number<double>(setting.value) : std::nullopt;
  if (!number || !std::isfinite(*number) || *number < least || *number > most) return std::nullopt;
  return number;
}

std::optional<std::int64_t> count_of(const Setting& setting, std::int64_t most) {
  const auto count = setting.has_value ? parse_number<std::int64_t>(setting.value) : std::nullopt;
  if (!count || *count < 1 || *count > most) return std::nullopt;
  return count;
}

/// "q_proj+v_proj"; nullopt: an empty one among them, or too many.
std::optional<std::vector<std::string>> names_of(const Setting& setting) {
  if (!setting.has_value) return std::nullopt;
  std::vector<std::string> names;
  for (const std::string_view name : cut(setting.value, '+')) {
    if (name.empty() || names.size() == most_patterns) return std::nullopt;
    names.emplace_back(name);
  }
  return names;
}

/// "q_proj:32+down_proj:8", which is peft's {"q_proj": 32, "down_proj": 8}.
Result<std::vector<LayerNumber>> layer_numbers_of(const Setting& setting, bool whole) {
  const auto parts = names_of(setting).value_or(std::vector<std::string>{""});
  std::vector<LayerNumber> numbers;
  numbers.reserve(parts.size());
  for (const std::string& part : parts) {
    const std::size_t colon = part.rfind(':');
    const Setting number{.key = setting.key,
                         .value = std::string_view(part).substr(
                             colon == std::string::npos ? part.size() : colon + 1),
                         .has_value = true};
    const std::optional<double> value = number_of(number, whole ? 1 : 0, 1e9);
    if (!value || colon == 0 || (whole && !count_of(number, most_rank))) {
      return failure(fmt::format("'{}' takes {} joined by '+', not {}", setting.key,
                                 whole ? "LAYER:RANK" : "LAYER:ALPHA",
                                 setting.has_value ? in_quotes(setting.value) : "nothing"));
    }
    numbers.push_back({.pattern = part.substr(0, colon), .number = *value});
  }
  return numbers;
}

constexpr std::string_view takes_names = "names joined by '+'";

struct FormatWord {
  std::string_view word;
  DataType type;
};
constexpr std::array<FormatWord, 8> format_words{{{"fp32", DataType::float32},
                                                  {"float32", DataType::float32},
                                                  {"bf16", DataType::bfloat16},
                                                  {"bfloat16", DataType::bfloat16},
                                                  {"fp16", DataType::float16},
                                                  {"float16", DataType::float16},
                                                  {"fp64", DataType::float64},
                                                  {"float64", DataType::float64}}};

/// Reads one key of `lora` into the settings.
Result<void> read_lora_setting(const Setting& setting, LoraSettings& lora) {
  static constexpr std::array<std::string_view, 12> known{
      "r",    "alpha",      "dropout", "targets",  "modules_to_save", "dtype",
      "bias", "use_rslora", "dora",    "use_dora", "rank_pattern",    "alpha_pattern"};
  const std::string_view key = setting.key;
  if (key == "r") {
    const auto rank = count_of(setting, most_rank);
    if (!rank) return unsuitable(setting, "a whole number of at least 1");
    lora.rank = *rank;
  } else if (key == "alpha") {
    const auto alpha = number_of(setting, 0, 1e9);
    if (!alpha) return unsuitable(setting, "a number of at least 0");
    lora.alpha = *alpha;
  } else if (key == "dropout") {
    const auto dropout = number_of(setting, 0, 0.999999);
    if (!dropout) return unsuitable(setting, "a probability below 1");
    lora.dropout = *dropout;
  } else if (key == "targets" || key == "modules_to_save") {
    auto names = names_of(setting);
    if (!names) return unsuitable(setting, takes_names);
    (key == "targets" ? lora.targets : lora.modules_to_save) = *std::move(names);
  } else if (key == "dtype") {
    lora.type = parse_format_word(setting.value);
    if (!lora.type) return unsuitable(setting, format_words_text);
  } else if (key == "bias") {
    if (setting.value != "none" && setting.value != "all" && setting.value != "lora_only") {
      return unsuitable(setting, "none, all or lora_only");
    }
    lora.bias = setting.value == "none"  ? LoraBias::none
                : setting.value == "all" ? LoraBias::all
                                         : LoraBias::lora_only;
  } else if (key == "use_rslora") {
    const auto truth = truth_of(setting);
    if (!truth) return unsuitable(setting, "true or false");
    lora.rank_stabilised = *truth;
  } else if (key == "dora" || key == "use_dora") {
    const auto truth = truth_of(setting);
    if (!truth) return unsuitable(setting, "true or false");
    lora.decomposed = *truth;
  } else if (key == "rank_pattern" || key == "alpha_pattern") {
    const bool ranks = key == "rank_pattern";
    auto numbers = layer_numbers_of(setting, ranks);
    if (!numbers) return tl::unexpected(std::move(numbers.error()));
    (ranks ? lora.ranks : lora.alphas) = *std::move(numbers);
  } else {
    return unknown_setting(key, known);
  }
  return {};
}

constexpr std::array<std::string_view, 4> unpacked_formats{"nf4", "fp4", "int8", "fp8"};
constexpr std::array<std::string_view, 7> base_formats{"nf4",  "fp4", "int8", "fp8",
                                                       "gptq", "awq", "int4"};
constexpr std::int64_t usual_group = 128;

/// The layout of `gptq`, `awq` or `int4` with its usual bits and group.
PackedLayout usual_layout(std::string_view format) {
  if (format == "gptq") return gptq_layout(4, usual_group);
  return format == "awq" ? awq_layout(usual_group) : int4_layout(usual_group);
}

/// Reads `bits` or `group`.
Result<void> read_packed_setting(const Setting& setting, std::string_view format,
                                 BaseSettings& base) {
  if (base.format != BaseFormat::packed) {
    return failure(fmt::format("'{}' is for gptq, awq and int4, not for {}", setting.key, format));
  }
  const auto number = setting.has_value ? parse_number<std::int64_t>(setting.value) : std::nullopt;
  if (setting.key == "bits") {
    const bool known = number && (*number == 2 || *number == 3 || *number == 4 || *number == 8);
    if (format == "gptq" && !known) return unsuitable(setting, "2, 3, 4 or 8");
    if (format != "gptq" && (!number || *number != 4)) {
      return failure(fmt::format("{} has 4 bits", format));
    }
    base.packed.bits = *number;
    return {};
  }
  if (!number || *number == 0 || *number < -1 || *number > most_rank) {
    return unsuitable(setting, "a whole number of at least 1, or -1 for whole rows");
  }
  base.packed.block_columns = *number == -1 ? 0 : *number;
  return {};
}

}  // namespace

std::optional<DataType> parse_format_word(std::string_view word) {
  for (const FormatWord& candidate : format_words) {
    if (candidate.word == word) return candidate.type;
  }
  return std::nullopt;
}

LoraSettings settings_of_layer(const LoraSettings& lora, std::string_view layer) {
  LoraSettings own = lora;
  const auto fitting = [&](const std::vector<LayerNumber>& numbers) {
    return std::find_if(numbers.begin(), numbers.end(), [&](const LayerNumber& number) {
      return is_target(layer, number.pattern);
    });
  };
  if (const auto rank = fitting(lora.ranks); rank != lora.ranks.end()) {
    own.rank = static_cast<std::int64_t>(rank->number);
  }
  if (const auto alpha = fitting(lora.alphas); alpha != lora.alphas.end()) {
    own.alpha = alpha->number;
  }
  return own;
}

double scaling_of(const LoraSettings& lora) {
  const auto rank = static_cast<double>(lora.rank);
  return lora.alpha / (lora.rank_stabilised ? std::sqrt(rank) : rank);
}

std::string to_string(const BaseSettings& base) {
  if (base.format == BaseFormat::packed) return describe(base.packed);
  return std::string(unpacked_formats[static_cast<std::size_t>(base.format)]);
}

std::string_view code_name(BaseFormat format) { return format == BaseFormat::fp4 ? "fp4" : "nf4"; }

Result<LoraSettings> parse_lora(std::string_view text) {
  const auto settings = settings_of(text);
  if (!settings) return tl::unexpected(settings.error());
  LoraSettings lora;
  for (const Setting& setting : *settings) {
    if (auto read = read_lora_setting(setting, lora); !read) {
      return tl::unexpected(std::move(read.error()));
    }
  }
  if (lora.targets.empty()) {
    return failure("'targets' is missing",
                   "say which layers get adapters: targets=q_proj+v_proj, or targets=all-linear");
  }
  return lora;
}

Result<BaseSettings> parse_base(std::string_view text) {
  static constexpr std::array<std::string_view, 4> known{"double_quant", "skip", "bits", "group"};
  const auto settings = settings_of(text);
  if (!settings) return tl::unexpected(settings.error());
  BaseSettings base;
  const Setting& first = settings->front();
  const auto found = std::find(base_formats.begin(), base_formats.end(), first.key);
  if (found == base_formats.end() || first.has_value) {
    std::string hint = did_you_mean(first.key, base_formats);
    if (hint.empty()) hint = fmt::format("formats are {}", fmt::join(base_formats, ", "));
    return failure(fmt::format("unknown format {}", in_quotes(first.key)), std::move(hint));
  }
  base.format = static_cast<BaseFormat>(
      std::min(found - base_formats.begin(), static_cast<std::ptrdiff_t>(BaseFormat::packed)));
  if (base.format == BaseFormat::packed) base.packed = usual_layout(first.key);
  for (const Setting& setting : std::span(*settings).subspan(1)) {
    if (setting.key == "double_quant") {
      const auto truth = truth_of(setting);
      if (!truth) return unsuitable(setting, "true or false");
      if (base.format != BaseFormat::nf4 && base.format != BaseFormat::fp4) {
        return failure(fmt::format("'double_quant' is for nf4 and fp4, not for {}", first.key));
      }
      base.double_quantised = *truth;
    } else if (setting.key == "skip") {
      auto names = names_of(setting);
      if (!names) return unsuitable(setting, takes_names);
      base.skipped = *std::move(names);
    } else if (setting.key == "bits" || setting.key == "group") {
      if (auto read = read_packed_setting(setting, first.key, base); !read) {
        return tl::unexpected(std::move(read.error()));
      }
    } else {
      return unknown_setting(setting.key, known);
    }
  }
  return base;
}

Result<CheckpointSettings> parse_checkpoint(std::string_view text) {
  static constexpr std::array<std::string_view, 4> known{"all", "every", "layers", "selective"};
  const auto settings = settings_of(text);
  if (!settings) return tl::unexpected(settings.error());
  CheckpointSettings checkpoint;
  for (const Setting& setting : *settings) {
    if (setting.key == "all") {
      if (setting.has_value) return failure("'all' takes no value");
    } else if (setting.key == "every") {
      const auto count = count_of(setting, most_rank);
      if (!count) return unsuitable(setting, "a whole number of at least 1");
      checkpoint.every = *count;
    } else if (setting.key == "layers") {
      auto names = names_of(setting);
      if (!names) return unsuitable(setting, "patterns of layers' paths joined by '+'");
      checkpoint.patterns = *std::move(names);
    } else if (setting.key == "selective") {
      const auto names = names_of(setting);
      for (const std::string& name : names.value_or(std::vector<std::string>{""})) {
        if (name != "attention" && name != "matmul") {
          return unsuitable(setting, "attention, matmul or attention+matmul");
        }
        (name == "attention" ? checkpoint.kept.attention : checkpoint.kept.products) = true;
      }
    } else {
      return unknown_setting(setting.key, known);
    }
  }
  if (checkpoint.every > 1 && !checkpoint.patterns.empty()) {
    return failure("'every' counts the repeated blocks, and 'layers' names others");
  }
  return checkpoint;
}

Result<std::vector<LayerType>> parse_layer_types(std::string_view text) {
  const auto settings = settings_of(text);
  if (!settings) return tl::unexpected(settings.error());
  if (settings->size() > most_patterns) {
    return failure(fmt::format("more than {} patterns", most_patterns));
  }
  std::vector<LayerType> types;
  for (const Setting& setting : *settings) {
    const auto type = setting.has_value ? parse_format_word(setting.value) : std::nullopt;
    if (!type) return unsuitable(setting, format_words_text);
    types.push_back({std::string(setting.key), *type});
  }
  return types;
}

Result<ChunkedLossSettings> parse_chunked_loss(std::string_view text) {
  static constexpr std::array<std::string_view, 2> known{"chunks", "compiled"};
  const auto settings = settings_of(text);
  if (!settings) return tl::unexpected(settings.error());
  ChunkedLossSettings loss;
  for (const Setting& setting : *settings) {
    if (setting.key == "compiled") {
      const auto truth = truth_of(setting);
      if (!truth) return unsuitable(setting, "true or false");
      loss.compiled = *truth;
      continue;
    }
    const bool alone = !setting.has_value && &setting == &settings->front();
    if (setting.key != "chunks" && !(alone && parse_number<std::int64_t>(setting.key))) {
      return unknown_setting(setting.key, known);
    }
    const Setting chunks{"chunks", alone ? setting.key : setting.value, true};
    const auto count = count_of(chunks, most_chunks);
    if (!count) return unsuitable(chunks, fmt::format("1 to {} chunks", most_chunks));
    loss.chunks = *count;
  }
  return loss;
}

Result<OffloadSettings> parse_offload(std::string_view text) {
  static constexpr std::array<std::string_view, 4> known{"all", "min_bytes", "stash", "streams"};
  const auto settings = settings_of(text);
  if (!settings) return tl::unexpected(settings.error());
  OffloadSettings offload;
  for (const Setting& setting : *settings) {
    if (setting.key == "all") {
      if (setting.has_value) return failure("'all' takes no value");
    } else if (setting.key == "min_bytes" || setting.key == "stash") {
      const bool bytes = setting.key == "min_bytes";
      const auto count = count_of(setting, bytes ? most_least_bytes : most_rank);
      if (!count) return unsuitable(setting, "a whole number of at least 1");
      (bytes ? offload.least_bytes : offload.stash) = *count;
    } else if (setting.key == "streams") {
      const auto truth = truth_of(setting);
      if (!truth) return unsuitable(setting, "true or false");
      offload.streams = *truth;
    } else {
      return unknown_setting(setting.key, known);
    }
  }
  return offload;
}

namespace {

Result<bool> parse_truth(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return failure(fmt::format("it is true or false, not {}", in_quotes(text)));
}

}  // namespace

Result<void> read_fine_tuning(const FineTuningTexts& texts, FineTuning& settings) {
  Diagnostics mistakes;
  const auto read = [&](std::string_view name, const std::optional<std::string>& text, auto parse,
                        auto store) {
    if (!text) return;
    auto parsed = parse(*text);
    if (parsed) return store(*std::move(parsed));
    for (Diagnostic& mistake : parsed.error()) {
      mistake.message = fmt::format("{}: {}", name, mistake.message);
      mistakes.push_back(std::move(mistake));
    }
  };
  read("lora", texts.lora, parse_lora, [&](LoraSettings lora) { settings.lora = std::move(lora); });
  read("base", texts.base, parse_base, [&](BaseSettings base) { settings.base = std::move(base); });
  read("checkpoint", texts.checkpoint, parse_checkpoint,
       [&](CheckpointSettings checkpoint) { settings.checkpoint = std::move(checkpoint); });
  read("layer_dtype", texts.layer_dtype, parse_layer_types,
       [&](std::vector<LayerType> types) { settings.layer_types = std::move(types); });
  read("chunked_loss", texts.chunked_loss, parse_chunked_loss,
       [&](ChunkedLossSettings loss) { settings.chunked_loss = loss; });
  read("offload_activations", texts.offload_activations, parse_offload,
       [&](OffloadSettings offload) { settings.offload = offload; });
  read("optimizer_in_backward", texts.optimizer_in_backward, parse_truth,
       [&](bool early) { settings.optimizer_in_backward = early; });
  if (!mistakes.empty()) return tl::unexpected(std::move(mistakes));
  return {};
}

}  // namespace stowage
