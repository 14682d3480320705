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

// From the release notes and from the classes named in <Type>_ATTENTION_CLASSES of each version.
constexpr std::array<FusedSince, 27> fused_since{{
    {"llama", {4, 36}},
    {"mistral", {4, 37}},
    {"mixtral", {4, 37}},
    {"qwen2", {4, 37}},
    {"qwen2_moe", {4, 40}},
    {"qwen3", {4, 51}},
    {"qwen3_moe", {4, 51}},
    {"gemma3_text", {4, 50}},
    {"phi", {4, 40}},
    {"phi3", {4, 41}},
    {"falcon", {4, 36}},
    {"stablelm", {4, 39}},
    {"gpt2", {4, 42}},
    {"gpt_neox", {4, 43}},
    {"opt", {4, 46}},
    {"bert", {4, 40}},
    {"roberta", {4, 46}},
    {"distilbert", {4, 45}},
    {"electra", {4, 56}},
    {"t5", {5, 15}},
    {"bart", {4, 37}},
    {"whisper", {4, 37}},
    {"vit", {4, 45}},
    {"clip", {4, 45}},
    {"clip_text_model", {4, 45}},
    {"clip_vision_model", {4, 45}},
    {"swin", {5, 15}},
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

bool pads_labels(const LibraryVersion& version) { return version >= LibraryVersion{4, 50}; }
bool upcasts_all_logits(const LibraryVersion& version) { return version >= LibraryVersion{4, 46}; }
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
