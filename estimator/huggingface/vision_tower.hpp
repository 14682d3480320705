// What the image models share: the keys of a stack of encoder layers, patches, lines of a
// description (description_text.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "estimator/huggingface/fragments.hpp"

namespace stowage {

/// A dropout, or nothing where `p` is 0.
[[nodiscard]] std::string vision_drop(std::string_view name, double p);
/// A layer norm; `from` empty: of the layer before.
[[nodiscard]] std::string vision_norm(std::string_view name, std::string_view from, double eps);

/// Patches of an image: as many a side. Patches larger than the image are a mistake.
[[nodiscard]] std::int64_t patches_of(ConfigReader& config, std::int64_t image, std::int64_t patch);
/// Patches of "input" as rows [batch, side * side, features]: a convolution called `name`.
[[nodiscard]] Lines patch_lines(std::string_view name, std::int64_t features, std::int64_t patch,
                                std::int64_t side, bool bias = true);
/// Two linear layers, "fc1" and "fc2", of "input".
[[nodiscard]] Lines vision_mlp_lines(Network& network, std::int64_t inner, std::int64_t features);
/// "pixel_values" [batch, channels, size, size].
void image_input(Network& network, std::int64_t channels, std::int64_t size);

/// A stack of equal encoder layers.
struct TowerKeys {
  std::int64_t hidden = 1, inner = 1, layers = 1, heads = 1, width = 1;  ///< width: of a head
  double eps = 1e-5, dropout = 0, attention_dropout = 0;
};
/// Dropouts have other names in each family, and are left at 0.
[[nodiscard]] TowerKeys read_tower(ConfigReader& config);
/// Attention of the layers `query`, `key` and `value` over `length` positions.
[[nodiscard]] AttentionCall tower_call(const TowerKeys& keys, const std::string& length,
                                       bool causal);

}  // namespace stowage
