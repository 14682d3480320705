// LibraryVersion: a version of transformers, and what changed in its steps between versions.
//
// The descriptions follow the sources of newest_known_version (docs/huggingface.md lists the
// differences to earlier versions with their sources).
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>

namespace stowage {

struct LibraryVersion {
  int major = 0;
  int minor = 0;
  auto operator<=>(const LibraryVersion&) const = default;
};
inline constexpr LibraryVersion newest_known_version{5, 24};
/// The oldest whose sources were read. An earlier one is sized as this.
inline constexpr LibraryVersion oldest_known_version{4, 36};

/// "4.40.0.dev0" and "5.24"; nullopt: not of that form.
[[nodiscard]] std::optional<LibraryVersion> parse_library_version(std::string_view text);
[[nodiscard]] std::string to_string(const LibraryVersion& version);

/// Whether the labels are shifted by padding them; earlier versions copied the logits without their
/// last position.
[[nodiscard]] bool pads_labels(const LibraryVersion& version);
/// Whether all causal models convert the logits to float32 for the loss.
[[nodiscard]] bool upcasts_all_logits(const LibraryVersion& version);
/// Whether a relative position bias is made contiguous for PyTorch's fused attention; in earlier
/// versions it was transposed, which no fused kernel takes.
[[nodiscard]] bool copies_position_bias(const LibraryVersion& version);
/// Whether from_pretrained takes the checkpoint's format by default.
[[nodiscard]] bool loads_checkpoint_format(const LibraryVersion& version);
/// The first version in which a type's default attention is PyTorch's fused one; nullopt: none yet.
[[nodiscard]] std::optional<LibraryVersion> first_with_fused_attention(std::string_view type);

}  // namespace stowage
