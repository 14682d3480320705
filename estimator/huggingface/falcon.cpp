// Falcon: one head of keys and values for all, or groups of them; rotary positions or ALiBi.
#include <fmt/format.h>

#include "estimator/huggingface/families.hpp"
#include "estimator/huggingface/parallel_layers.hpp"

namespace stowage {

namespace {

struct FalconKeys {
  bool alibi = false, grouped = false, one_key_head = false, parallel = true, bias = false;
  int norms = 1;
  std::int64_t key_heads = 1;
  double hidden_dropout = 0, attention_dropout = 0;
};

FalconKeys read_falcon(ConfigReader& config, ParallelSizes& sizes) {
  FalconKeys keys;
  keys.alibi = config.boolean("alibi");
  keys.grouped = config.boolean("new_decoder_architecture");
  keys.one_key_head = config.boolean("multi_query");
  keys.parallel = config.boolean("parallel_attn");
  keys.bias = config.boolean("bias");
  const auto norms = config.integer_or_null("num_ln_in_parallel_attn", 1, 2);
  keys.norms = static_cast<int>(norms.value_or(keys.grouped ? 2 : 1));
  keys.key_heads = config.integer_or_null("num_kv_heads").value_or(sizes.heads);
  if (keys.grouped && sizes.heads % keys.key_heads != 0) {
    config.wrong("num_kv_heads", "key and value heads must divide the heads");
    keys.key_heads = 1;
  }
  keys.hidden_dropout = config.probability("hidden_dropout");
  keys.attention_dropout = config.probability("attention_dropout");
  sizes.inner = config.integer_or_null("ffn_hidden_size").value_or(4 * sizes.hidden);
  return keys;
}

// transformers takes one head of keys with a list of indices, which copies it.
void add_falcon_projections(LayerLines& layers, const ParallelSizes& sizes,
                            const FalconKeys& keys) {
  const std::int64_t heads = sizes.heads, width = sizes.width;
  if (keys.grouped) {
    const std::int64_t each = heads / keys.key_heads;
    layers.add(
        linear_line("query_key_value", "input.0", (heads + 2 * keys.key_heads) * width, keys.bias));
    layers.add(fmt::format("reshape: {{name: qkv, shape: [batch, seq, {}, {}, {}]}}",
                           keys.key_heads, each + 2, width));
    layers.add(fmt::format("slice: {{name: query_part, from: qkv, axis: 3, length: {}}}", each));
    for (const auto& [name, start] : {std::pair{"key", each}, std::pair{"value", each + 1}}) {
      layers.add(fmt::format("slice: {{name: {}_part, from: qkv, axis: 3, start: {}, length: 1}}",
                             name, start));
      layers.add(fmt::format("contiguous: {{name: {}_copied}}", name));
    }
    for (const std::string_view name : {"key", "value"}) {
      layers.add(
          fmt::format("expand: {{name: {}_wide, from: {}_copied, shape: [batch, seq, {}, {}, {}]}}",
                      name, name, keys.key_heads, each, width));
    }
    for (const auto& [name, from] : {std::pair{"query", "query_part"}, std::pair{"key", "key_wide"},
                                     std::pair{"value", "value_wide"}}) {
      layers.add(fmt::format("reshape: {{name: {}_rows, from: {}, shape: [batch, seq, {}, {}]}}",
                             name, from, heads, width));
    }
  } else if (keys.one_key_head) {
    layers.add(linear_line("query_key_value", "input.0", (heads + 2) * width, keys.bias));
    layers.add(
        fmt::format("reshape: {{name: qkv, shape: [batch, seq, {}, {}]}}", heads + 2, width));
    layers.add(fmt::format("slice: {{name: query_rows, from: qkv, axis: 2, length: {}}}", heads));
    for (const auto& [name, start] : {std::pair{"key", heads}, std::pair{"value", heads + 1}}) {
      layers.add(fmt::format("slice: {{name: {}_part, from: qkv, axis: 2, start: {}, length: 1}}",
                             name, start));
      layers.add(fmt::format("contiguous: {{name: {}_rows}}", name));
    }
  } else {
    layers.add(linear_line("query_key_value", "input.0", 3 * heads * width, keys.bias));
    layers.add(fmt::format("reshape: {{name: qkv, shape: [batch, seq, {}, 3, {}]}}", heads, width));
    for (const auto& [name, start] :
         {std::pair{"query", 0}, std::pair{"key", 1}, std::pair{"value", 2}}) {
      layers.add(fmt::format("slice: {{name: {}_part, from: qkv, axis: 3, start: {}, length: 1}}",
                             name, start));
      layers.add(fmt::format("reshape: {{name: {}_rows, shape: [batch, seq, {}, {}]}}", name, heads,
                             width));
    }
  }
  for (const std::string_view name : {"query", "key", "value"}) {
    layers.add(
        fmt::format("transpose: {{name: {}, from: {}_rows, axes: [0, 2, 1, 3]}}", name, name));
  }
}

void write_falcon_layer(Network& network, const ParallelSizes& sizes, const FalconKeys& keys,
                        std::string_view inputs) {
  LayerLines& layer = network.text.block("decoder_layer");
  const bool two_norms = keys.grouped && keys.norms == 2;
  const bool side_by_side = keys.grouped || keys.parallel;
  std::string own = "input_layernorm", fed = "input_layernorm";
  if (two_norms) {
    own = "ln_attn";
    fed = "ln_mlp";
    layer.add(parallel_norm("ln_attn", "input.0", sizes.eps));
    layer.add(parallel_norm("ln_mlp", "input.0", sizes.eps));
  } else {
    layer.add(parallel_norm("input_layernorm", "input.0", sizes.eps));
  }
  layer.add(fmt::format("self_attention: {{name: self_attention, from: [{}, {}]}}", own, inputs));
  std::string residual = "input.0";
  if (!side_by_side) {
    layer.add(parallel_drop("attention_dropped", "", keys.attention_dropout));
    layer.add("add: {name: attended, from: [input.0, attention_dropped]}");
    layer.add(parallel_norm("post_attention_layernorm", "", sizes.eps));
    residual = "attended";
    fed = "post_attention_layernorm";
  }
  layer.add(fmt::format("mlp: {{name: mlp, from: {}}}", fed));
  if (side_by_side) layer.add("add: {name: both, from: [mlp, self_attention], in_place: true}");
  layer.add(parallel_drop("dropped", "", keys.hidden_dropout));
  layer.add(fmt::format("add: {{name: done, from: [{}, dropped]}}", residual));
}

}  // namespace

/// Writes attention with its mask or bias of positions (ALiBi), the feed-forward network, the
/// layer, the decoder with the tables that its layers read, and the head.
void write_falcon(Network& network) {
  ConfigReader& config = network.config;
  config.pass_over("n_embed");
  config.pass_over("apply_residual_connection_post_layernorm");
  ParallelSizes sizes = read_parallel_sizes(config, "layer_norm_epsilon");
  const FalconKeys keys = read_falcon(config, sizes);
  const RotaryKeys rotary = read_rotary(config);
  start_parallel(network, sizes);

  LayerLines& attention = network.text.block("self_attention");
  add_falcon_projections(attention, sizes, keys);
  AttentionCall call = parallel_attention(network, sizes, "query", "key", "value",
                                          keys.alibi ? keys.attention_dropout : 0);
  if (!keys.grouped && keys.one_key_head) call.key_heads = 1;
  if (!keys.alibi) {
    attention.add("rotary: {name: turned, from: [query, key, input.1, input.2]}");
    call.query = "turned.0";
    call.key = "turned.1";
  }
  const std::string mask = keys.alibi ? "input.1" : "input.3";
  // The mask is always made, and added by PyTorch's attention.
  std::vector<std::string> lines;
  if (network.attention == AttentionFunction::eager) {
    call.mask = mask;
    lines = attention_lines(network, call);
  } else {
    lines.push_back(
        fmt::format("scaled_dot_product_attention: {{name: attention, from: [{}, {}, "
                    "value, {}]{}}}",
                    call.query, call.key, mask,
                    call.dropout > 0 ? fmt::format(", dropout: {}", call.dropout) : ""));
    for (std::string& line : joined_heads(sizes.hidden)) lines.push_back(std::move(line));
  }
  attention.add(lines);
  attention.add(linear_line("dense", "", sizes.hidden, keys.bias));
  add_plain_network(network, "dense_h_to_4h", "dense_4h_to_h", sizes, "activation", keys.bias);
  write_falcon_layer(network, sizes, keys, keys.alibi ? "input.1" : "input.1, input.2, input.3");

  LayerLines& base = network.text.block("decoder");
  base.add(fmt::format("embedding: {{name: word_embeddings, from: input, count: {}, features: {}}}",
                       sizes.vocabulary, sizes.hidden));
  std::string inputs;
  if (keys.alibi) {
    base.add(fmt::format("constant: {{name: {}, shape: [batch, {}, seq, seq]}}", full_mask,
                         sizes.heads));
    base.add(fmt::format("rotary_table: {{name: rotary_emb, length: seq, features: {}, base: {}}}",
                         sizes.width, rotary.base));
    inputs = full_mask;
  } else {
    if (network.attention == AttentionFunction::eager) {
      base.add(causal_mask_lines(network, 0));
    } else {
      base.add(fmt::format("constant: {{name: mask_once, shape: [1, 1, seq, seq], dtype: bool}}"));
      base.add(fmt::format("expand: {{name: {}, shape: [batch, 1, seq, seq]}}", full_mask));
    }
    base.add(fmt::format("rotary_table: {{name: rotary_emb, length: seq, features: {}, base: {}}}",
                         sizes.width, rotary.base));
    inputs = fmt::format("rotary_emb.0, rotary_emb.1, {}", full_mask);
  }
  base.add(
      fmt::format("decoder_layer: {{name: h, from: [word_embeddings, {}], repeat: layers, "
                  "checkpoint: checkpoint}}",
                  inputs));
  base.add(parallel_norm("ln_f", "", sizes.eps));
  network.text.layers().add("decoder: {name: transformer, from: tokens}");
  add_parallel_head(network, sizes, "transformer", false, "word_embeddings");
}

}  // namespace stowage
