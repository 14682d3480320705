#include "estimator/huggingface/vision_tower.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace stowage {

namespace {

constexpr std::int64_t most_layers_vision = 10'000;

std::int64_t vision_width(ConfigReader& config, std::int64_t hidden, std::int64_t heads) {
  if (hidden % heads != 0) {
    config.wrong("num_attention_heads",
                 fmt::format("a hidden size of {} does not divide into {} heads", hidden, heads));
  }
  return std::max<std::int64_t>(hidden / heads, 1);
}

}  // namespace

std::string vision_drop(std::string_view name, double p) {
  if (p == 0) return fmt::format("identity: {{name: {}}}", name);
  return fmt::format("dropout: {{name: {}, p: {}}}", name, p);
}

std::string vision_norm(std::string_view name, std::string_view from, double eps) {
  return fmt::format("layer_norm: {{name: {}, {}eps: {}}}", name,
                     from.empty() ? "" : fmt::format("from: {}, ", from), eps);
}

std::int64_t patches_of(ConfigReader& config, std::int64_t image, std::int64_t patch) {
  if (patch > image) {
    config.wrong("patch_size",
                 fmt::format("patches of {} do not fit into images of {}", patch, image));
    return 1;
  }
  return image / patch;
}

Lines patch_lines(std::string_view name, std::int64_t features, std::int64_t patch,
                  std::int64_t side, bool bias) {
  return {fmt::format("conv2d: {{name: {}, from: input, channels: {}, kernel: {}, stride: {}{}}}",
                      name, features, patch, patch, bias ? "" : ", bias: false"),
          fmt::format("reshape: {{name: grid, shape: [batch, {}, {}]}}", features, side * side),
          "transpose: {name: rows, axes: [0, 2, 1]}"};
}

Lines vision_mlp_lines(Network& network, std::int64_t inner, std::int64_t features) {
  Lines lines{linear_line("fc1", "input", inner)};
  for (std::string& line : activation_lines(network, "hidden_act", "activation_fn")) {
    lines.push_back(std::move(line));
  }
  lines.push_back(linear_line("fc2", "", features));
  return lines;
}

void image_input(Network& network, std::int64_t channels, std::int64_t size) {
  network.text.input("pixel_values",
                     fmt::format("{{shape: [batch, {}, {}, {}]}}", channels, size, size));
}

TowerKeys read_tower(ConfigReader& config) {
  TowerKeys keys;
  keys.hidden = config.integer("hidden_size");
  keys.inner = config.integer("intermediate_size");
  keys.layers = config.integer("num_hidden_layers", 1, most_layers_vision);
  keys.heads = config.integer("num_attention_heads");
  keys.width = vision_width(config, keys.hidden, keys.heads);
  keys.eps = config.real("layer_norm_eps");
  return keys;
}

AttentionCall tower_call(const TowerKeys& keys, const std::string& length, bool causal) {
  return {.query = "query",
          .key = "key",
          .value = "value",
          .heads = keys.heads,
          .key_heads = keys.heads,
          .width = keys.width,
          .causal = causal,
          .dropout = keys.attention_dropout,
          .queries = length,
          .keys = length};
}

}  // namespace stowage
