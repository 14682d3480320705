// ViT, Swin and CLIP.
//
// CLIP's logits grow with the square of the batch, and sizes here are linear in it: both towers are
// described, to their normalized embeddings and the similarity of each pair, and there is no loss.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "estimator/huggingface/families.hpp"
#include "estimator/huggingface/fragments.hpp"

namespace stowage {

namespace {

constexpr std::int64_t most_layers_vision = 10'000;

std::string vision_drop(std::string_view name, double p) {
  if (p == 0) return fmt::format("identity: {{name: {}}}", name);
  return fmt::format("dropout: {{name: {}, p: {}}}", name, p);
}

std::string vision_norm(std::string_view name, std::string_view from, double eps) {
  return fmt::format("layer_norm: {{name: {}, {}eps: {}}}", name,
                     from.empty() ? "" : fmt::format("from: {}, ", from), eps);
}

std::int64_t vision_width(ConfigReader& config, std::int64_t hidden, std::int64_t heads) {
  if (hidden % heads != 0) {
    config.wrong("num_attention_heads",
                 fmt::format("a hidden size of {} does not divide into {} heads", hidden, heads));
  }
  return std::max<std::int64_t>(hidden / heads, 1);
}

/// Patches of an image: as many a side.
std::int64_t patches_of(ConfigReader& config, std::int64_t image, std::int64_t patch) {
  if (patch > image) {
    config.wrong("patch_size",
                 fmt::format("patches of {} do not fit into images of {}", patch, image));
    return 1;
  }
  return image / patch;
}

void image_input(Network& network, std::int64_t channels, std::int64_t size) {
  network.text.input("pixel_values",
                     fmt::format("{{shape: [batch, {}, {}, {}]}}", channels, size, size));
}

struct TowerKeys {
  std::int64_t hidden = 1, inner = 1, layers = 1, heads = 1, width = 1;
  double eps = 1e-5, dropout = 0, attention_dropout = 0;
};

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

void add_heads(LayerLines& layers, const TowerKeys& keys, const std::string& length) {
  for (const auto& [name, letter] :
       {std::pair{"query", "q"}, std::pair{"key", "k"}, std::pair{"value", "v"}}) {
    layers.add(fmt::format("reshape: {{name: {}_view, from: {}_proj, shape: [batch, {}, {}, {}]}}",
                           name, letter, length, keys.heads, keys.width));
    layers.add(fmt::format("transpose: {{name: {}, axes: [0, 2, 1, 3]}}", name));
  }
}

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
  LayerLines& mlp = network.text.block("mlp");
  mlp.add(linear_line("fc1", "input", keys.inner));
  mlp.add(activation_lines(network, "hidden_act", "activation_fn"));
  mlp.add(linear_line("fc2", "", keys.hidden));
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
  patches.add(
      fmt::format("conv2d: {{name: projection, from: input, channels: {}, kernel: {}, "
                  "stride: {}}}",
                  keys.hidden, patch, patch));
  patches.add(
      fmt::format("reshape: {{name: grid, shape: [batch, {}, {}]}}", keys.hidden, side * side));
  patches.add("transpose: {name: rows, axes: [0, 2, 1]}");
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

namespace {

struct SwinKeys {
  std::int64_t image = 1, patch = 1, channels = 3, width = 1, window = 1;
  std::vector<std::int64_t> depths, heads;
  double ratio = 4, dropout = 0, attention_dropout = 0, path_dropout = 0, eps = 1e-5;
  bool bias = true, absolute = false;
};

SwinKeys read_swin(ConfigReader& config) {
  SwinKeys keys;
  keys.image = config.integer("image_size", 1, 1 << 16);
  keys.patch = config.integer("patch_size", 1, 1 << 16);
  keys.channels = config.integer("num_channels");
  keys.width = config.integer("embed_dim");
  keys.window = config.integer("window_size", 1, 4096);
  keys.depths = config.integers("depths");
  keys.heads = config.integers("num_heads");
  config.pass_over("num_layers");
  config.pass_over("path_norm");
  config.pass_over("out_features");
  config.pass_over("out_indices");
  config.pass_over("stage_names");
  config.pass_over("hidden_size");
  if (keys.depths.empty() || keys.depths.size() != keys.heads.size() || keys.depths.size() > 16) {
    config.wrong("depths", "'depths' and 'num_heads' must name the same stages, at most 16");
    keys.depths = keys.heads = {1};
  }
  keys.ratio = config.real("mlp_ratio", 0.01, 1000);
  keys.dropout = config.probability("hidden_dropout_prob");
  keys.attention_dropout = config.probability("attention_probs_dropout_prob");
  keys.path_dropout = config.probability("drop_path_rate");
  keys.eps = config.real("layer_norm_eps");
  keys.bias = config.boolean("qkv_bias");
  keys.absolute = config.boolean("use_absolute_embeddings");
  return keys;
}

/// A stage: images of `side` x `side` with `features`, in windows of `window`.
struct SwinStageShape {
  std::int64_t number = 0, side = 1, padded = 1, window = 1, features = 1, heads = 1, depth = 1,
               before = 0, layers = 1;
};

std::string windows_of(const SwinStageShape& stage) {
  const std::int64_t count = (stage.padded / stage.window) * (stage.padded / stage.window);
  return fmt::format("batch * {}", count);
}

void add_swin_attention(Network& network, const SwinKeys& keys, const SwinStageShape& stage) {
  const std::int64_t width = stage.features / stage.heads, area = stage.window * stage.window;
  const std::string windows = windows_of(stage);
  LayerLines& layers = network.text.block(fmt::format("attention_{}", stage.number));
  for (const auto& [name, letter] :
       {std::pair{"query", "q"}, std::pair{"key", "k"}, std::pair{"value", "v"}}) {
    layers.add(linear_line(fmt::format("{}_proj", letter), "input.0", stage.features, keys.bias));
    layers.add(fmt::format("reshape: {{name: {}_view, shape: [{}, {}, {}, {}]}}", name, windows,
                           area, stage.heads, width));
    layers.add(fmt::format("transpose: {{name: {}, axes: [0, 2, 1, 3]}}", name));
  }
  layers.add(
      fmt::format("relative_position_bias: {{name: relative_position_bias, heads: {}, window: "
                  "{}}}",
                  stage.heads, stage.window));
  const std::string shifted = "index % 2 == 1";
  const bool shifts = stage.side > stage.window;
  std::string mask = "relative_position_bias";
  if (shifts) {
    const std::int64_t count = (stage.padded / stage.window) * (stage.padded / stage.window);
    layers.add(fmt::format("constant: {{name: shift_mask, when: {}, shape: [1, {}, 1, {}, {}]}}",
                           shifted, count, area, area));
    layers.add(fmt::format("expand: {{name: wide_mask, when: {}, shape: [batch, {}, 1, {}, {}]}}",
                           shifted, count, area, area));
    layers.add(fmt::format("reshape: {{name: masks, when: {}, shape: [{}, 1, {}, {}]}}", shifted,
                           windows, area, area));
    layers.add(
        fmt::format("add: {{name: combined_mask, from: [relative_position_bias, masks], "
                    "when: {}}}",
                    shifted));
    mask = "combined_mask";
  }
  if (network.attention == AttentionFunction::eager) {
    layers.add("matmul: {name: scores, from: [query, key], transpose_b: true}");
    layers.add(fmt::format("scale: {{name: scaled, factor: {:.17g}}}",
                           1 / std::sqrt(static_cast<double>(width))));
    layers.add(fmt::format("add: {{name: masked, from: [scaled, {}]}}", mask));
    layers.add("softmax: {name: weights, upcast: true}");
    layers.add(vision_drop("kept", keys.attention_dropout));
    layers.add("matmul: {name: attention, from: [kept, value]}");
  } else {
    layers.add(fmt::format(
        "scaled_dot_product_attention: {{name: attention, from: [query, key, value, {}]{}}}", mask,
        keys.attention_dropout > 0 ? fmt::format(", dropout: {}", keys.attention_dropout) : ""));
  }
  layers.add("transpose: {name: heads_last, axes: [0, 2, 1, 3]}");
  layers.add(
      fmt::format("reshape: {{name: joined, shape: [{}, {}, {}]}}", windows, area, stage.features));
  layers.add(linear_line("o_proj", "", stage.features));
}

void add_swin_block(Network& network, const SwinKeys& keys, const SwinStageShape& stage) {
  const std::int64_t side = stage.side, padded = stage.padded, window = stage.window,
                     features = stage.features, across = padded / window;
  const auto inner = static_cast<std::int64_t>(keys.ratio * static_cast<double>(features));
  LayerLines& mlp = network.text.block(fmt::format("mlp_{}", stage.number));
  mlp.add(linear_line("fc1", "input", inner));
  mlp.add(activation_lines(network, "hidden_act", "activation_fn"));
  mlp.add(linear_line("fc2", "", features));
  LayerLines& layer = network.text.block(fmt::format("swin_layer_{}", stage.number));
  const bool shifts = side > window;
  const std::int64_t shift = keys.window / 2;
  const auto roll = [&](std::string_view name, std::int64_t by) {
    if (!shifts) return fmt::format("identity: {{name: {}}}", name);
    return fmt::format("roll: {{name: {}, when: index % 2 == 1, shifts: [{}, {}], axes: [1, 2]}}",
                       name, by, by);
  };
  layer.add(vision_norm("layernorm_before", "input", keys.eps));
  layer.add(
      fmt::format("reshape: {{name: image, shape: [batch, {}, {}, {}]}}", side, side, features));
  // Padding of width 0 copies.
  layer.add(fmt::format("pad: {{name: padded, after: [{}, {}, 0]}}", padded - side, padded - side));
  layer.add(roll("rolled", -shift));
  layer.add(fmt::format("reshape: {{name: cut, shape: [batch, {}, {}, {}, {}, {}]}}", across,
                        window, across, window, features));
  layer.add("transpose: {name: gathered, axes: [0, 1, 3, 2, 4, 5]}");
  layer.add(fmt::format("reshape: {{name: windows, shape: [{}, {}, {}]}}", windows_of(stage),
                        window * window, features));
  layer.add(fmt::format("attention_{}: {{name: attention, from: [windows]}}", stage.number));
  layer.add(vision_drop("attention_dropped", keys.dropout));
  layer.add(fmt::format("reshape: {{name: cut_back, shape: [batch, {}, {}, {}, {}, {}]}}", across,
                        across, window, window, features));
  layer.add("transpose: {name: spread, axes: [0, 1, 3, 2, 4, 5]}");
  layer.add(fmt::format("reshape: {{name: image_back, shape: [batch, {}, {}, {}]}}", padded, padded,
                        features));
  layer.add(roll("rolled_back", shift));
  if (padded != side) {
    layer.add(fmt::format("slice: {{name: upper, axis: 1, length: {}}}", side));
    layer.add(fmt::format("slice: {{name: upper_left, axis: 2, length: {}}}", side));
    layer.add("contiguous: {name: cropped}");
  }
  layer.add(fmt::format("reshape: {{name: rows, shape: [batch, {}, {}]}}", side * side, features));
  if (keys.path_dropout > 0 && stage.layers > 1) {
    layer.add(
        fmt::format("drop_path: {{name: dropped, p: {} * ({} + index) / {}, as: "
                    "transformers}}",
                    keys.path_dropout, stage.before, stage.layers - 1));
  } else {
    layer.add("identity: {name: dropped}");
  }
  layer.add("add: {name: attended, from: [input, dropped]}");
  layer.add(vision_norm("layernorm_after", "", keys.eps));
  layer.add(fmt::format("mlp_{}: {{name: mlp}}", stage.number));
  layer.add(vision_drop("fed", keys.dropout));
  layer.add("add: {name: done, from: [fed, attended]}");
}

void add_swin_merging(Network& network, const SwinStageShape& stage) {
  LayerLines& layers = network.text.block(fmt::format("downsample_{}", stage.number));
  const std::int64_t side = stage.side, even = side + side % 2;
  layers.add(fmt::format("reshape: {{name: image, from: input, shape: [batch, {}, {}, {}]}}", side,
                         side, stage.features));
  if (even != side) layers.add("pad: {name: padded, after: [1, 1, 0]}");
  const std::string_view from = even != side ? "padded" : "image";
  for (int i = 0; i < 4; ++i) {
    layers.add(fmt::format("slice: {{name: rows_{}, from: {}, axis: 1, start: {}, step: 2}}", i,
                           from, i % 2));
    layers.add(fmt::format("slice: {{name: part_{}, axis: 2, start: {}, step: 2}}", i, i / 2));
  }
  layers.add("concat: {name: joined, from: [part_0, part_1, part_2, part_3], axis: 3}");
  layers.add(fmt::format("reshape: {{name: merged, shape: [batch, {}, {}]}}",
                         (even / 2) * (even / 2), 4 * stage.features));
  layers.add("layer_norm: {name: norm}");
  layers.add(linear_line("reduction", "", 2 * stage.features, false));
}

}  // namespace

void write_swin(Network& network) {
  ConfigReader& config = network.config;
  const SwinKeys keys = read_swin(config);
  network.text.argument("checkpoint", "false");
  image_input(network, keys.channels, keys.image);
  const std::int64_t grid = patches_of(config, keys.image, keys.patch);
  if (keys.image % keys.patch != 0) {
    return config.wrong("patch_size", "images that are no multiple of a patch are not read");
  }
  LayerLines& patches = network.text.block("patch_embeddings");
  patches.add(
      fmt::format("conv2d: {{name: projection, from: input, channels: {}, kernel: {}, "
                  "stride: {}}}",
                  keys.width, keys.patch, keys.patch));
  patches.add(
      fmt::format("reshape: {{name: grid, shape: [batch, {}, {}]}}", keys.width, grid * grid));
  patches.add("transpose: {name: rows, axes: [0, 2, 1]}");
  LayerLines& embeddings = network.text.block("embeddings");
  embeddings.add("patch_embeddings: {name: patch_embeddings, from: input}");
  embeddings.add("layer_norm: {name: norm}");
  if (keys.absolute) {
    embeddings.add(fmt::format("parameter: {{name: position_embeddings, shape: [1, {}, {}]}}",
                               grid * grid, keys.width));
    embeddings.add("add: {name: placed, from: [norm, position_embeddings]}");
  }
  embeddings.add(vision_drop("dropped", keys.dropout));

  SwinStageShape stage{.side = grid, .features = keys.width};
  for (const std::int64_t depth : keys.depths) stage.layers += depth;
  stage.layers -= 1;
  std::vector<std::string> stages;
  for (std::size_t i = 0; i < keys.depths.size(); ++i) {
    stage.number = static_cast<std::int64_t>(i);
    stage.heads = keys.heads[i];
    stage.depth = keys.depths[i];
    stage.window = std::min(keys.window, stage.side);
    stage.padded = (stage.side + stage.window - 1) / stage.window * stage.window;
    if (stage.features % stage.heads != 0) {
      return config.wrong("num_heads", fmt::format("{} features do not divide into {} heads",
                                                   stage.features, stage.heads));
    }
    const bool merges = i + 1 < keys.depths.size();
    add_swin_attention(network, keys, stage);
    add_swin_block(network, keys, stage);
    if (merges) add_swin_merging(network, stage);
    LayerLines& lines = network.text.block(fmt::format("stage_{}", i));
    lines.add(
        fmt::format("swin_layer_{}: {{name: blocks, from: input, repeat: {}, checkpoint: "
                    "checkpoint}}",
                    i, stage.depth));
    if (merges) {
      lines.add(fmt::format("downsample_{}: {{name: downsample}}", i));
      stage.side = (stage.side + 1) / 2;
      stage.features *= 2;
    }
    stage.before += stage.depth;
    stages.push_back(fmt::format("stage_{}: {{name: layers_{}}}", i, i));
  }
  LayerLines& encoder = network.text.block("swin_encoder");
  encoder.add("identity: {name: embedded, from: input}");
  encoder.add(stages);
  LayerLines& base = network.text.block("swin_model");
  base.add("embeddings: {name: embeddings, from: input}");
  base.add("swin_encoder: {name: encoder}");
  base.add(vision_norm("layernorm", "", keys.eps));
  base.add("transpose: {name: channels_first, axes: [0, 2, 1]}");
  base.add("adaptive_avg_pool1d: {name: pooler, size: 1}");
  base.add(fmt::format("reshape: {{name: pooled, shape: [batch, {}]}}", stage.features));
  network.text.layers().add("swin_model: {name: swin, from: pixel_values}");
  if (network.head != Head::image_classification) return;
  network.text.layers().add(linear_line("classifier", "", network.labels));
  class_loss(network, "classifier");
}

namespace {

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
  LayerLines& mlp = network.text.block(fmt::format("{}_mlp", tower));
  mlp.add(linear_line("fc1", "input", keys.inner));
  mlp.add(activation_lines(part, "hidden_act", "activation_fn"));
  mlp.add(linear_line("fc2", "", keys.hidden));
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
  embeddings.add(
      fmt::format("conv2d: {{name: patch_embedding, from: input, channels: {}, kernel: "
                  "{}, stride: {}, bias: false}}",
                  keys.hidden, patch, patch));
  embeddings.add(
      fmt::format("reshape: {{name: grid, shape: [batch, {}, {}]}}", keys.hidden, side * side));
  embeddings.add("transpose: {name: rows, axes: [0, 2, 1]}");
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

}  // namespace

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
  layers.add("mul: {name: products, from: [text_embeds, image_embeds]}");
  layers.add("sum: {name: similarity, axes: [-1]}");
  layers.add("scale: {name: logit_scale, learned: true}");
  network.text.output("logit_scale");
  config.warn("model_type",
              "CLIP's logits grow with the square of the batch and are not sized; without them "
              "there is no loss to train with");
}

}  // namespace stowage
