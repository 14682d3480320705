// CLIP: a tower for text and one for images, with a projection each.
//
// The logits grow with the square of the batch, and sizes here are linear in it: both towers are
// described, to their normalized embeddings and the similarity of each pair, and there is no loss.
// With the argument `pairs` the step is of so many pairs, and has the logits of each text beside
// each image, and the contrastive loss.
#include <fmt/format.h>

#include "estimator/huggingface/families.hpp"
#include "estimator/huggingface/fragments.hpp"
#include "estimator/huggingface/vision_tower.hpp"

namespace stowage {

namespace {

void add_heads(LayerLines& layers, const TowerKeys& keys, const std::string& length) {
  for (const auto& [name, letter] :
       {std::pair{"query", "q"}, std::pair{"key", "k"}, std::pair{"value", "v"}}) {
    layers.add(fmt::format("reshape: {{name: {}_view, from: {}_proj, shape: [batch, {}, {}, {}]}}",
                           name, letter, length, keys.heads, keys.width));
    layers.add(fmt::format("transpose: {{name: {}, axes: [0, 2, 1, 3]}}", name));
  }
}

void add_clip_layers(Network& network, ConfigReader& config, const TowerKeys& keys,
                     const std::string& length, std::string_view tower, bool causal) {
  Network part{config, network.text, network.head, network.attention, network.version};
  LayerLines& attention = network.text.block(fmt::format("{}_attention", tower));
  for (const std::string_view letter : {"q", "k", "v"}) {
    attention.add(linear_line(fmt::format("{}_proj", letter), "input", keys.hidden));
  }
  add_heads(attention, keys, length);
  AttentionCall call = tower_call(keys, length, causal);
  if (causal && network.attention == AttentionFunction::eager) {
    attention.add(
        fmt::format("constant: {{name: causal_mask, shape: [batch, 1, {}, {}]}}", length, length));
    call.mask = "causal_mask";
  }
  attention.add(attention_lines(part, call));
  attention.add(linear_line("out_proj", "", keys.hidden));
  network.text.block(fmt::format("{}_mlp", tower))
      .add(vision_mlp_lines(part, keys.inner, keys.hidden));
  LayerLines& layer = network.text.block(fmt::format("{}_layer", tower));
  layer.add(vision_norm("layer_norm1", "input", keys.eps));
  layer.add(fmt::format("{}_attention: {{name: self_attn}}", tower));
  layer.add("add: {name: attended, from: [input, self_attn]}");
  layer.add(vision_norm("layer_norm2", "", keys.eps));
  layer.add(fmt::format("{}_mlp: {{name: mlp}}", tower));
  layer.add("add: {name: done, from: [attended, mlp]}");
  network.text.block(fmt::format("{}_encoder", tower))
      .add(
          fmt::format("{}_layer: {{name: layers, from: input, repeat: {}, checkpoint: checkpoint}}",
                      tower, keys.layers));
}

void add_clip_text(Network& network, ConfigReader& config) {
  TowerKeys keys = read_tower(config);
  keys.attention_dropout = config.probability("attention_dropout");
  const std::int64_t positions = config.integer("max_position_embeddings");
  sequence_symbol(network, positions, positions);
  token_input(network);
  add_clip_layers(network, config, keys, "seq", "text", true);
  LayerLines& embeddings = network.text.block("text_embeddings");
  embeddings.add(
      fmt::format("embedding: {{name: token_embedding, from: input, count: {}, features: "
                  "{}}}",
                  config.integer("vocab_size"), keys.hidden));
  embeddings.add(
      fmt::format("constant: {{name: position_ids, shape: [1, {}], dtype: int64, buffer: "
                  "true}}",
                  positions));
  embeddings.add("slice: {name: places, axis: 1, length: seq}");
  embeddings.add(fmt::format("embedding: {{name: position_embedding, count: {}, features: {}}}",
                             positions, keys.hidden));
  embeddings.add("add: {name: embedded, from: [token_embedding, position_embedding]}");
  LayerLines& base = network.text.block("text_tower");
  base.add("text_embeddings: {name: embeddings, from: input}");
  base.add("text_encoder: {name: encoder}");
  base.add(vision_norm("final_layer_norm", "", keys.eps));
  base.add("slice: {name: last_token, axis: 1, start: -1}");
  // transformers takes it by indices, which copy.
  base.add("contiguous: {name: last_copied}");
  base.add(fmt::format("reshape: {{name: pooled, shape: [batch, {}]}}", keys.hidden));
}

void add_clip_vision(Network& network, ConfigReader& config) {
  TowerKeys keys = read_tower(config);
  keys.attention_dropout = config.probability("attention_dropout");
  const std::int64_t size = config.integer("image_size", 1, 1 << 16);
  const std::int64_t patch = config.integer("patch_size", 1, 1 << 16);
  const std::int64_t side = patches_of(config, size, patch), count = side * side + 1;
  image_input(network, config.integer("num_channels"), size);
  add_clip_layers(network, config, keys, fmt::format("{}", count), "vision", false);
  LayerLines& embeddings = network.text.block("vision_embeddings");
  embeddings.add(patch_lines("patch_embedding", keys.hidden, patch, side, false));
  embeddings.add(fmt::format("parameter: {{name: class_embedding, shape: [{}]}}", keys.hidden));
  embeddings.add(fmt::format("reshape: {{name: class_row, shape: [1, 1, {}]}}", keys.hidden));
  embeddings.add(fmt::format("expand: {{name: class_rows, shape: [batch, 1, {}]}}", keys.hidden));
  embeddings.add("concat: {name: tokens, from: [class_rows, rows], axis: 1}");
  embeddings.add(
      fmt::format("constant: {{name: position_ids, shape: [1, {}], dtype: int64, buffer: "
                  "true}}",
                  count));
  embeddings.add(fmt::format("embedding: {{name: position_embedding, count: {}, features: {}}}",
                             count, keys.hidden));
  embeddings.add("add: {name: embedded, from: [tokens, position_embedding]}");
  LayerLines& base = network.text.block("vision_tower");
  base.add("vision_embeddings: {name: embeddings, from: input}");
  base.add(vision_norm("pre_layrnorm", "", keys.eps));
  base.add("vision_encoder: {name: encoder}");
  base.add("slice: {name: first, axis: 1, length: 1}");
  base.add(fmt::format("reshape: {{name: first_token, shape: [batch, {}]}}", keys.hidden));
  base.add(vision_norm("post_layernorm", "", keys.eps));
}

/// x / sqrt(sum of squares).
void add_normalized(LayerLines& layers, std::string_view name, std::string_view from) {
  layers.add(fmt::format("pow: {{name: {}_squares, from: {}, exponent: 2}}", name, from));
  layers.add(fmt::format("sum: {{name: {}_sum, axes: [-1], keep: true}}", name));
  layers.add(fmt::format("pow: {{name: {}_length, exponent: 0.5}}", name));
  layers.add(fmt::format("div: {{name: {}, from: [{}, {}_length]}}", name, from, name));
}

/// image_text_contrastive_loss: half the sum of two cross entropies, of the logits and of the same
/// transposed; a pair's own place is its target.
void add_contrastive_loss(Network& network, std::int64_t pairs) {
  network.text.argument("pairs", fmt::format("{}", pairs));
  network.text.fix_batch("pairs");
  LayerLines& layers = network.text.layers();
  layers.add("matmul: {name: similarity, from: [text_embeds, image_embeds], transpose_b: true}");
  layers.add("parameter: {name: logit_scale, shape: []}");
  layers.add("exp: {name: logit_factor}");
  layers.add("mul: {name: logits_per_text, from: [similarity, logit_factor]}");
  layers.add("transpose: {name: logits_per_image, axes: [1, 0]}");
  network.text.output("logits_per_image");
  if (!network.has_loss) return;
  std::string losses;
  for (const auto& [side, logits] :
       {std::pair{"caption", "logits_per_text"}, std::pair{"image", "logits_per_image"}}) {
    layers.add(fmt::format("constant: {{name: {}_places, shape: [batch], dtype: int64}}", side));
    losses += fmt::format("{}- cross_entropy: {{from: [{}, {}_places], weight: 0.5}}",
                          losses.empty() ? "" : "\n  ", logits, side);
  }
  network.text.loss(std::move(losses));
}

}  // namespace

/// Writes a single tower if the configuration is one; else both towers, their projections and
/// normalised embeddings, and the loss over the pairs if their number is given.
void write_clip(Network& network) {
  ConfigReader& config = network.config;
  network.text.argument("checkpoint", "false");
  if (config.type() != "clip") {
    const bool text = config.type() == "clip_text_model";
    if (text) add_clip_text(network, config);
    if (!text) add_clip_vision(network, config);
    network.text.layers().add(text ? "text_tower: {name: text_model, from: tokens}"
                                   : "vision_tower: {name: vision_model, from: pixel_values}");
    return;
  }
  const std::int64_t projected = config.integer("projection_dim");
  LayerLines& layers = network.text.layers();
  for (const auto& [key, type] : {std::pair{"text_config", "clip_text_model"},
                                  std::pair{"vision_config", "clip_vision_model"}}) {
    const YamlNode* part = config.written(key);
    config.pass_over(std::string(key) + "_dict");
    if (part == nullptr || !part->is_mapping()) {
      config.wrong(key, fmt::format("'{}' must be a mapping", key));
      continue;
    }
    ConfigReader reader(*part, type, std::string(key) + ".", config.mistakes());
    if (std::string_view(type) == "clip_text_model") add_clip_text(network, reader);
    if (std::string_view(type) == "clip_vision_model") add_clip_vision(network, reader);
    reader.finish();
  }
  layers.add("vision_tower: {name: vision_model, from: pixel_values}");
  layers.add(linear_line("visual_projection", "", projected, false));
  layers.add("text_tower: {name: text_model, from: tokens}");
  layers.add(linear_line("text_projection", "", projected, false));
  add_normalized(layers, "image_embeds", "visual_projection");
  add_normalized(layers, "text_embeds", "text_projection");
  if (network.pairs) return add_contrastive_loss(network, *network.pairs);
  layers.add("mul: {name: products, from: [text_embeds, image_embeds]}");
  layers.add("sum: {name: similarity, axes: [-1]}");
  layers.add("scale: {name: logit_scale, learned: true}");
  network.text.output("logit_scale");
  config.warn("model_type",
              "CLIP's logits grow with the square of the batch and are not sized; without them "
              "there is no loss to train with",
              "the argument 'pairs', a number, sizes a step of so many pairs with both");
}

}  // namespace stowage
