#include "estimator/huggingface/attention_choice.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>

namespace stowage {

namespace {

/// The flash-attn package's functions; of Swin and T5 transformers has none, and Gemma 2's caps of
/// scores are not sized within them.
bool is_flash_function(std::string_view name) {
  return name == "flash_attention_2" || name == "flash_attention_3" || name == "flash_attention_4";
}

bool has_flash_function(const Family& family) {
  return family.type != "swin" && family.type != "t5" && !family.eager_only;
}

struct AskedAttention {
  std::string name;
  std::string_view key = {};  ///< of the file; empty: an argument, or nothing asks
};

std::optional<AskedAttention> asked_attention(ConfigReader& config, const ImportOptions& options) {
  const auto given = options.values.find("attention");
  if (given != options.values.end()) return AskedAttention{given->second};
  std::optional<AskedAttention> asked;
  for (const std::string_view key : {"_attn_implementation", "attn_implementation"}) {
    if (config.written(key) == nullptr) continue;
    if (std::string name = config.word(key); !name.empty()) {
      asked = AskedAttention{std::move(name), key};
    }
  }
  return asked;
}

std::string attention_list(const Family& family) {
  if (family.eager_only) return fmt::format("eager for {}", family.type);
  return "sdpa or eager";
}

}  // namespace

Result<AttentionChoice> chosen_attention(ConfigReader& config, const Family& family,
                                         const LibraryVersion& version,
                                         const ImportOptions& options) {
  const auto fused = first_with_fused_attention(family.type);
  const bool has_fused = !family.eager_only && fused && version >= *fused;
  const auto asked = asked_attention(config, options);
  const std::string name = asked ? asked->name : has_fused ? "sdpa" : "eager";
  if (name == "eager") return AttentionChoice{AttentionFunction::eager, false, "'eager'"};
  if (name == "paged") {
    return AttentionChoice{family.has_sinks ? AttentionFunction::eager : AttentionFunction::sdpa,
                           true, "'paged'"};
  }
  if (is_flash_function(name) && has_flash_function(family)) {
    return AttentionChoice{AttentionFunction::sdpa, false,
                           fmt::format("'{}', sized as 'sdpa'", name)};
  }
  if (name == "sdpa" && !family.eager_only) {
    return AttentionChoice{AttentionFunction::sdpa, false,
                           has_fused || !fused ? "'sdpa'"
                                               : fmt::format("'sdpa', which {} has from {} on",
                                                             family.type, to_string(*fused))};
  }
  if (asked && !asked->key.empty()) {
    config.wrong(asked->key,
                 fmt::format("the attention '{}' is not sized for {}", name, family.type),
                 fmt::format("the argument 'attention' takes another: {}", attention_list(family)));
    return AttentionChoice{};
  }
  return failure(
      fmt::format("the argument 'attention' takes {}, not '{}'", attention_list(family), name));
}

}  // namespace stowage
