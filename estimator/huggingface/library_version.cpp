#include "estimator/huggingface/library_version.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>

namespace stowage {

namespace {

struct FusedSince {
  std::string_view type;
  LibraryVersion version;
};

// The first of the released wheels from 4.36 on whose <Type>PreTrainedModel says _supports_sdpa =
// True (of the minor versions 4.36 to 4.50, 4.56, 4.57, 5.0, 5.6, 5.10, 5.14, 5.15; Qwen3 came
// with 4.51). 0.0: from its own first release on, which files of the development version before it
// name too.
constexpr std::array<FusedSince, 32> fused_since{{
    {"llama", {4, 36}},
    {"falcon", {4, 36}},
    {"bart", {4, 36}},
    {"whisper", {4, 36}},
    {"mistral", {4, 37}},
    {"mixtral", {4, 37}},
    {"qwen2", {4, 37}},
    {"gemma", {0, 0}},
    {"phi", {4, 39}},
    {"stablelm", {4, 39}},
    {"starcoder2", {0, 0}},
    {"qwen2_moe", {4, 40}},
    {"bert", {4, 41}},
    {"vit", {4, 41}},
    {"gpt2", {4, 42}},
    {"gpt_neox", {4, 42}},
    {"clip", {4, 43}},
    {"clip_text_model", {4, 43}},
    {"clip_vision_model", {4, 43}},
    {"phi3", {4, 45}},
    {"roberta", {4, 45}},
    {"xlm-roberta", {4, 45}},
    {"camembert", {4, 45}},
    {"granite", {0, 0}},
    {"opt", {4, 46}},
    {"distilbert", {4, 46}},
    {"gemma3_text", {4, 50}},
    {"qwen3", {4, 51}},
    {"qwen3_moe", {4, 51}},
    {"electra", {5, 0}},
    {"swin", {5, 10}},
    {"t5", {5, 15}},
}};

}  // namespace

std::optional<LibraryVersion> parse_library_version(std::string_view text) {
  LibraryVersion version;
  const char* const end = text.data() + text.size();
  const auto major = std::from_chars(text.data(), end, version.major);
  if (major.ec != std::errc() || major.ptr == end || *major.ptr != '.') return std::nullopt;
  const auto minor = std::from_chars(major.ptr + 1, end, version.minor);
  if (minor.ec != std::errc() || (minor.ptr != end && *minor.ptr != '.')) return std::nullopt;
  if (version.major < 0 || version.minor < 0) return std::nullopt;
  return version;
}

std::string to_string(const LibraryVersion& version) {
  return fmt::format("{}.{}", version.major, version.minor);
}

bool pads_labels(const LibraryVersion& version) { return version >= LibraryVersion{4, 49}; }
bool upcasts_all_logits(const LibraryVersion& version) { return version >= LibraryVersion{4, 48}; }
// integrations/sdpa_attention.py, create_position_bias_mask, in the wheels of 5.15 to 5.24; seen
// under 5.17.0 on an H100.
bool copies_position_bias(const LibraryVersion& version) {
  return version >= LibraryVersion{5, 20};
}
bool loads_checkpoint_format(const LibraryVersion& version) {
  return version >= LibraryVersion{5, 0};
}

std::optional<LibraryVersion> first_with_fused_attention(std::string_view type) {
  for (const FusedSince& row : fused_since) {
    if (row.type == type) return row.version;
  }
  return std::nullopt;
}

}  // namespace stowage
