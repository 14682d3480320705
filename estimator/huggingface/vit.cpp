// ViT: an image in patches, a token of the class before them, encoder layers.
#include <fmt/format.h>

#include "estimator/huggingface/families.hpp"
#include "estimator/huggingface/fragments.hpp"
#include "estimator/huggingface/vision_tower.hpp"

namespace stowage {

namespace {

void add_vit_layer(Network& network, const TowerKeys& keys, const std::string& length) {
  LayerLines& attention = network.text.block("attention");
  const bool bias = network.config.boolean("qkv_bias");
  for (const auto& [name, letter] :
       {std::pair{"query", "q"}, std::pair{"key", "k"}, std::pair{"value", "v"}}) {
    attention.add(linear_line(fmt::format("{}_proj", letter), "input", keys.hidden, bias));
    attention.add(split_heads(name, keys.heads, keys.width, length));
  }
  attention.add(attention_lines(network, tower_call(keys, length, false)));
  attention.add(linear_line("o_proj", "", keys.hidden));
  network.text.block("mlp").add(vision_mlp_lines(network, keys.inner, keys.hidden));
  LayerLines& layer = network.text.block("vit_layer");
  layer.add(vision_norm("layernorm_before", "input", keys.eps));
  layer.add("attention: {name: attention}");
  layer.add(vision_drop("attention_dropped", keys.dropout));
  layer.add("add: {name: attended, from: [attention_dropped, input]}");
  layer.add(vision_norm("layernorm_after", "", keys.eps));
  layer.add("mlp: {name: mlp}");
  layer.add(vision_drop("fed", keys.dropout));
  layer.add("add: {name: done, from: [fed, attended]}");
}

}  // namespace

/// Writes the layer, the patches with the class token and positions, the encoder, and the pooler or
/// the head.
void write_vit(Network& network) {
  ConfigReader& config = network.config;
  TowerKeys keys = read_tower(config);
  keys.dropout = config.probability("hidden_dropout_prob");
  keys.attention_dropout = config.probability("attention_probs_dropout_prob");
  const std::int64_t size = config.integer("image_size", 1, 1 << 16);
  const std::int64_t patch = config.integer("patch_size", 1, 1 << 16);
  const std::int64_t side = patches_of(config, size, patch);
  const std::int64_t count = side * side + 1;
  const std::string length = fmt::format("{}", count);
  network.text.argument("layers", fmt::format("{}", keys.layers));
  network.text.argument("checkpoint", "false");
  image_input(network, config.integer("num_channels"), size);
  add_vit_layer(network, keys, length);

  LayerLines& patches = network.text.block("patch_embeddings");
  patches.add(patch_lines("projection", keys.hidden, patch, side));
  LayerLines& embeddings = network.text.block("embeddings");
  embeddings.add("patch_embeddings: {name: patch_embeddings, from: input}");
  embeddings.add(fmt::format("parameter: {{name: cls_token, shape: [1, 1, {}]}}", keys.hidden));
  embeddings.add(fmt::format("expand: {{name: cls, shape: [batch, 1, {}]}}", keys.hidden));
  embeddings.add("concat: {name: tokens, from: [cls, patch_embeddings], axis: 1}");
  embeddings.add(fmt::format("parameter: {{name: position_embeddings, shape: [1, {}, {}]}}", count,
                             keys.hidden));
  embeddings.add("add: {name: placed, from: [tokens, position_embeddings]}");
  embeddings.add(vision_drop("dropped", keys.dropout));
  LayerLines& base = network.text.block("image_encoder");
  base.add("embeddings: {name: embeddings, from: input}");
  base.add("vit_layer: {name: layers, repeat: layers, checkpoint: checkpoint}");
  base.add(vision_norm("layernorm", "", keys.eps));
  const auto first = [&](LayerLines& layers, std::string_view from) {
    layers.add(fmt::format("slice: {{name: first, from: {}, axis: 1, length: 1}}", from));
    layers.add(fmt::format("reshape: {{name: first_token, shape: [batch, {}]}}", keys.hidden));
  };
  config.pass_over("encoder_stride");
  if (network.head == Head::none) {
    const std::int64_t pooled = config.integer_or_null("pooler_output_size").value_or(keys.hidden);
    LayerLines& pooler = network.text.block("pooler");
    first(pooler, "input");
    pooler.add(linear_line("dense", "", pooled));
    pooler.add(activation_lines(network, "pooler_act", "activation"));
    base.add("pooler: {name: pooler}");
  }
  network.text.layers().add("image_encoder: {name: vit, from: pixel_values}");
  if (network.head != Head::image_classification) return;
  first(network.text.layers(), "vit");
  network.text.layers().add(linear_line("classifier", "", network.labels));
  class_loss(network, "classifier");
}

}  // namespace stowage
