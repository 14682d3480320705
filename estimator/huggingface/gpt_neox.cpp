// GPT-NeoX (Pythia): queries, keys and values of one product; a norm for attention and one for the
// feed-forward network, side by side or one behind the other.
#include <fmt/format.h>

#include "estimator/huggingface/families.hpp"
#include "estimator/huggingface/parallel_layers.hpp"

namespace stowage {

/// Writes attention, the feed-forward network, the layer in its parallel or sequential form, then
/// the parts around it.
void write_gpt_neox(Network& network) {
  ConfigReader& config = network.config;
  ParallelSizes sizes = read_parallel_sizes(config, "layer_norm_eps");
  sizes.inner = config.integer("intermediate_size");
  const bool bias = config.boolean("attention_bias");
  const double dropout = config.probability("hidden_dropout");
  const RotaryKeys rotary = read_rotary(config);
  const std::int64_t rotated = rotated_features(config, sizes, rotary);
  start_parallel(network, sizes);

  LayerLines& attention = network.text.block("self_attn");
  attention.add(linear_line("query_key_value", "input.0", 3 * sizes.hidden, bias));
  attention.add(fmt::format("reshape: {{name: qkv_view, shape: [batch, seq, {}, {}]}}", sizes.heads,
                            3 * sizes.width));
  attention.add("transpose: {name: qkv_heads, axes: [0, 2, 1, 3]}");
  attention.add("split: {name: qkv, parts: 3, axis: 3}");
  for (const auto& [name, part] : {std::pair{"query", 0}, std::pair{"key", 1}}) {
    attention.add(fmt::format("identity: {{name: {}, from: qkv.{}}}", name, part));
  }
  add_partial_rotation(attention, rotated, rotated == sizes.width);
  attention.add(attention_lines(
      network, parallel_attention(network, sizes, "whole_query", "whole_key", "qkv.2",
                                  config.probability("attention_dropout"))));
  attention.add(linear_line("dense", "", sizes.hidden, bias));

  add_plain_network(network, "dense_h_to_4h", "dense_4h_to_h", sizes, "hidden_act", true);

  LayerLines& layer = network.text.block("decoder_layer");
  layer.add(parallel_norm("input_layernorm", "input.0", sizes.eps));
  layer.add(fmt::format("self_attn: {{name: attention, from: [input_layernorm, {}]}}",
                        parallel_attention_inputs(network)));
  layer.add(parallel_drop("attention_dropped", "", dropout));
  if (config.boolean("use_parallel_residual")) {
    layer.add(parallel_norm("post_attention_layernorm", "input.0", sizes.eps));
    layer.add("mlp: {name: mlp, from: post_attention_layernorm}");
    layer.add(parallel_drop("fed", "", dropout));
    layer.add("add: {name: both, from: [fed, attention_dropped]}");
    layer.add("add: {name: done, from: [both, input.0]}");
  } else {
    layer.add("add: {name: attended, from: [attention_dropped, input.0]}");
    layer.add(parallel_norm("post_attention_layernorm", "", sizes.eps));
    layer.add("mlp: {name: mlp, from: post_attention_layernorm}");
    layer.add(parallel_drop("fed", "", dropout));
    layer.add("add: {name: done, from: [fed, attended]}");
  }

  write_parallel_stack(network, sizes,
                       {.model = "gpt_neox",
                        .embedding = "embed_in",
                        .final_norm = "final_layer_norm",
                        .embedding_dropout = dropout,
                        .rotated = rotated,
                        .base = rotary.base,
                        .head_bias = false});
}

}  // namespace stowage
