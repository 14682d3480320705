// Functions that the image models share: the keys of a stack of encoder layers, patches, and lines
// of a description (description_text.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "estimator/huggingface/fragments.hpp"

namespace stowage {

/// The line of a dropout; empty if `p` is 0.
[[nodiscard]] std::string vision_drop(std::string_view name, double p);
/// The line of a layer norm; with an empty `from` it reads the previous layer.
[[nodiscard]] std::string vision_norm(std::string_view name, std::string_view from, double eps);

/// The number of patches along one side of an image; reports patches larger than the image.
[[nodiscard]] std::int64_t patches_of(ConfigReader& config, std::int64_t image, std::int64_t patch);
/// The patches of "input" as rows [batch, side * side, features], by a convolution called `name`.
[[nodiscard]] Lines patch_lines(std::string_view name, std::int64_t features, std::int64_t patch,
                                std::int64_t side, bool bias = true);
/// Two linear layers, "fc1" and "fc2", that read "input".
[[nodiscard]] Lines vision_mlp_lines(Network& network, std::int64_t inner, std::int64_t features);
/// Declares the input "pixel_values" [batch, channels, size, size].
void image_input(Network& network, std::int64_t channels, std::int64_t size);

/// The sizes of a stack of equal encoder layers.
struct TowerKeys {
  std::int64_t hidden = 1, inner = 1, layers = 1, heads = 1, width = 1;  ///< width: of a head
  double eps = 1e-5, dropout = 0, attention_dropout = 0;
};
/// Leaves the dropouts at 0, as their keys differ between the families.
[[nodiscard]] TowerKeys read_tower(ConfigReader& config);
/// Attention of the layers `query`, `key` and `value` over `length` positions.
[[nodiscard]] AttentionCall tower_call(const TowerKeys& keys, const std::string& length,
                                       bool causal);

}  // namespace stowage
