// Swin: attention within windows of an image, every second block's shifted; patches merge from
// stage to stage.
#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "estimator/huggingface/families.hpp"
#include "estimator/huggingface/fragments.hpp"
#include "estimator/huggingface/vision_tower.hpp"

namespace stowage {

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

/// Writes a stage's attention within windows: projections, the bias of positions, for shifted
/// windows a mask, the attention function, and the output projection.
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
    layers.add(
        fmt::format("softmax: {{name: weights, upcast: true, held: {}}}", held_weights(network)));
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

/// Writes a stage's layer: norm, padding and shift of the image, its cut into windows, attention,
/// the way back to rows, and the feed-forward network.
void add_swin_block(Network& network, const SwinKeys& keys, const SwinStageShape& stage) {
  const std::int64_t side = stage.side, padded = stage.padded, window = stage.window,
                     features = stage.features, across = padded / window;
  const auto inner = static_cast<std::int64_t>(keys.ratio * static_cast<double>(features));
  network.text.block(fmt::format("mlp_{}", stage.number))
      .add(vision_mlp_lines(network, inner, features));
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

/// Writes the patches and embeddings, the stages (each with half the side and twice the features of
/// the one before), the pooled result, and the head.
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
  patches.add(patch_lines("projection", keys.width, keys.patch, grid));
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
    stage.window = keys.window;
    // transformers cuts such a stage into smaller windows, and its biases no longer fit the scores.
    if (stage.side < stage.window) {
      return config.wrong("window_size",
                          fmt::format("windows of {} x {} patches are larger than stage {}'s "
                                      "images of {} x {}",
                                      stage.window, stage.window, i, stage.side, stage.side),
                          "transformers runs no such model");
    }
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

}  // namespace stowage
