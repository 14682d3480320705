// LibraryVersion: a version of transformers, and what of its steps changed between versions.
//
// The newest that these facts were read from is newest_known_version, whose sources the
// descriptions follow (docs/huggingface.md lists the differences and where each is from).
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

/// "4.40.0.dev0" and "5.24"; nullopt: not of that form.
[[nodiscard]] std::optional<LibraryVersion> parse_library_version(std::string_view text);
[[nodiscard]] std::string to_string(const LibraryVersion& version);

/// Whether the labels are moved by padding them; before, the logits were copied without their last
/// position.
[[nodiscard]] bool pads_labels(const LibraryVersion& version);
/// Whether all causal models make the logits float32 for the loss.
[[nodiscard]] bool upcasts_all_logits(const LibraryVersion& version);
/// Whether a bias by distance is made contiguous for PyTorch's fused attention; before, it arrived
/// transposed, which no fused kernel takes.
[[nodiscard]] bool copies_position_bias(const LibraryVersion& version);
/// Whether from_pretrained takes the format of the checkpoint where none is asked for.
[[nodiscard]] bool loads_checkpoint_format(const LibraryVersion& version);
/// The first version in which a type's default attention is PyTorch's fused one; nullopt: none yet.
[[nodiscard]] std::optional<LibraryVersion> first_with_fused_attention(std::string_view type);

}  // namespace stowage
