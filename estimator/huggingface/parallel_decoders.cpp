// Decoders with layer norms and a plain feed-forward network whose attention and feed-forward
// network may read side by side: Phi, GPT-NeoX (Pythia), Falcon.
#include <fmt/format.h>

#include <algorithm>

#include "estimator/huggingface/families.hpp"
#include "estimator/huggingface/fragments.hpp"
#include "estimator/huggingface/rotary_keys.hpp"

namespace stowage {

namespace {

struct Sizes {
  std::int64_t vocabulary = 1, hidden = 1, inner = 1, layers = 1, heads = 1, width = 1,
               positions = 1;
  double eps = 1e-5;
};

constexpr std::int64_t most_layers_parallel = 10'000;

Sizes read_sizes(ConfigReader& config, std::string_view eps_key) {
  Sizes sizes;
  sizes.vocabulary = config.integer("vocab_size");
  sizes.hidden = config.integer("hidden_size");
  sizes.layers = config.integer("num_hidden_layers", 1, most_layers_parallel);
  sizes.heads = config.integer("num_attention_heads");
  sizes.positions = config.integer("max_position_embeddings");
  sizes.eps = config.real(eps_key);
  if (sizes.hidden % sizes.heads != 0) {
    config.wrong("num_attention_heads",
                 fmt::format("a hidden size of {} does not divide into {} heads", sizes.hidden,
                             sizes.heads));
  }
  sizes.width = std::max<std::int64_t>(sizes.hidden / sizes.heads, 1);
  return sizes;
}

std::string layer_norm_line(std::string_view name, std::string_view from, double eps) {
  return fmt::format("layer_norm: {{name: {}, {}eps: {}}}", name,
                     from.empty() ? "" : fmt::format("from: {}, ", from), eps);
}

std::string dropped_line(std::string_view name, std::string_view from, double p) {
  const std::string source = from.empty() ? "" : fmt::format("from: {}, ", from);
  if (p == 0) return fmt::format("identity: {{{}name: {}}}", source, name);
  return fmt::format("dropout: {{{}name: {}, p: {}}}", source, name, p);
}

void start(Network& network, const Sizes& sizes) {
  network.text.argument("layers", fmt::format("{}", sizes.layers));
  network.text.argument("checkpoint", "false");
  sequence_symbol(network, sizes.positions, 2048);
  token_input(network);
}

void plain_network(Network& network, std::string_view first, std::string_view second,
                   const Sizes& sizes, std::string_view activation, bool bias) {
  LayerLines& mlp = network.text.block("mlp");
  mlp.add(linear_line(first, "input", sizes.inner, bias));
  mlp.add(activation_lines(network, activation, "act"));
  mlp.add(linear_line(second, "", sizes.hidden, bias));
}

std::int64_t rotated_features(ConfigReader& config, const Sizes& sizes, const RotaryKeys& rotary) {
  const auto rotated = static_cast<std::int64_t>(static_cast<double>(sizes.width) * rotary.part);
  if (rotated >= 2 && rotated % 2 == 0) return rotated;
  config.wrong("num_attention_heads",
               fmt::format("rotary positions turn pairs, and {} of a head's {} features are none",
                           rotated, sizes.width));
  return 2;
}

// The turned features of query and key beside those that are passed: q_rot, q_pass, k_rot, k_pass.
// `whole`: all are turned, and nothing is sliced; the results are copied all the same.
void add_partial_rotation(LayerLines& layers, std::int64_t rotated, bool whole) {
  if (whole) {
    layers.add("rotary: {name: turned, from: [query, key, input.1, input.2]}");
    layers.add("contiguous: {name: whole_query, from: turned.0}");
    layers.add("contiguous: {name: whole_key, from: turned.1}");
    return;
  }
  for (const std::string_view name : {"query", "key"}) {
    layers.add(
        fmt::format("slice: {{name: {}_rot, from: {}, axis: 3, length: {}}}", name, name, rotated));
    layers.add(
        fmt::format("slice: {{name: {}_pass, from: {}, axis: 3, start: {}}}", name, name, rotated));
  }
  layers.add("rotary: {name: turned, from: [query_rot, key_rot, input.1, input.2]}");
  layers.add("concat: {name: whole_query, from: [turned.0, query_pass], axis: 3}");
  layers.add("concat: {name: whole_key, from: [turned.1, key_pass], axis: 3}");
}

void finish_head(Network& network, const Sizes& sizes, std::string_view base, bool bias,
                 const std::string& tied_to, std::string_view head_name) {
  if (network.head == Head::causal_lm) {
    causal_lm_head(network, base, head_name, sizes.vocabulary, bias, tied_to);
  } else if (network.head == Head::sequence_classification) {
    last_token_head(network, base, "score");
  }
}

std::string mask_input(const Network& network) {
  return network.attention == AttentionFunction::eager ? fmt::format(", {}", full_mask)
                                                       : std::string();
}

AttentionCall causal_call(const Network& network, const Sizes& sizes, std::string query,
                          std::string key, std::string value, double dropout) {
  AttentionCall call{.query = std::move(query),
                     .key = std::move(key),
                     .value = std::move(value),
                     .heads = sizes.heads,
                     .key_heads = sizes.heads,
                     .width = sizes.width,
                     .causal = true,
                     .dropout = dropout};
  if (network.attention == AttentionFunction::eager) call.mask = "input.3";
  return call;
}

std::string_view attention_inputs(const Network& network) {
  return network.attention == AttentionFunction::eager ? "input.1, input.2, input.3"
                                                       : "input.1, input.2";
}

}  // namespace

void write_phi(Network& network) {
  ConfigReader& config = network.config;
  Sizes sizes = read_sizes(config, "layer_norm_eps");
  sizes.inner = config.integer("intermediate_size");
  const std::int64_t key_heads =
      config.integer_or_null("num_key_value_heads").value_or(sizes.heads);
  if (sizes.heads % key_heads != 0) {
    return config.wrong("num_key_value_heads", "key and value heads must divide the heads");
  }
  const double residual = config.probability("resid_pdrop");
  const RotaryKeys rotary = read_rotary(config);
  const std::int64_t rotated = rotated_features(config, sizes, rotary);
  const bool head_norms = config.boolean("qk_layernorm");
  start(network, sizes);

  LayerLines& attention = network.text.block("self_attn");
  const std::string_view heads = head_norms ? "_heads" : "";
  for (const auto& [letter, name, count] :
       {std::tuple{"q", "query", sizes.heads}, std::tuple{"k", "key", key_heads},
        std::tuple{"v", "value", key_heads}}) {
    attention.add(linear_line(fmt::format("{}_proj", letter), "input.0", count * sizes.width));
    attention.add(
        split_heads(fmt::format("{}{}", name, letter[0] == 'v' ? "" : heads), count, sizes.width));
  }
  if (head_norms) {
    for (const auto& [letter, name] : {std::pair{"q", "query"}, std::pair{"k", "key"}}) {
      attention.add(layer_norm_line(fmt::format("{}_layernorm", letter),
                                    fmt::format("{}_heads", name), sizes.eps));
      attention.add(fmt::format("identity: {{name: {}}}", name));
    }
  }
  add_partial_rotation(attention, rotated, false);
  AttentionCall call = causal_call(network, sizes, "whole_query", "whole_key", "value",
                                   config.probability("attention_dropout"));
  call.key_heads = key_heads;
  attention.add(attention_lines(network, call));
  attention.add(linear_line("dense", "", sizes.hidden));

  plain_network(network, "fc1", "fc2", sizes, "hidden_act", true);

  LayerLines& layer = network.text.block("decoder_layer");
  layer.add(layer_norm_line("input_layernorm", "input.0", sizes.eps));
  layer.add(fmt::format("self_attn: {{name: self_attn, from: [input_layernorm, {}]}}",
                        attention_inputs(network)));
  layer.add(dropped_line("attention_dropped", "", residual));
  layer.add("mlp: {name: mlp, from: input_layernorm}");
  layer.add(dropped_line("fed", "", residual));
  layer.add("add: {name: both, from: [attention_dropped, fed]}");
  layer.add("add: {name: done, from: [both, input.0]}");

  LayerLines& base = network.text.block("decoder");
  base.add(fmt::format("embedding: {{name: embed_tokens, from: input, count: {}, features: {}}}",
                       sizes.vocabulary, sizes.hidden));
  base.add(causal_mask_lines(network, 0));
  base.add(dropped_line("embedded", "embed_tokens", config.probability("embd_pdrop")));
  base.add(fmt::format("rotary_table: {{name: rotary_emb, length: seq, features: {}, base: {}}}",
                       rotated, rotary.base));
  base.add(
      fmt::format("decoder_layer: {{name: layers, from: [embedded, rotary_emb.0, "
                  "rotary_emb.1{}], repeat: layers, checkpoint: checkpoint}}",
                  mask_input(network)));
  base.add(layer_norm_line("final_layernorm", "", sizes.eps));
  network.text.layers().add("decoder: {name: model, from: tokens}");
  const bool tied = config.boolean("tie_word_embeddings");
  finish_head(network, sizes, "model", true, tied ? "model.embed_tokens.weight" : "", "lm_head");
}

void write_gpt_neox(Network& network) {
  ConfigReader& config = network.config;
  Sizes sizes = read_sizes(config, "layer_norm_eps");
  sizes.inner = config.integer("intermediate_size");
  const bool bias = config.boolean("attention_bias");
  const double dropout = config.probability("hidden_dropout");
  const RotaryKeys rotary = read_rotary(config);
  const std::int64_t rotated = rotated_features(config, sizes, rotary);
  start(network, sizes);

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
  attention.add(
      attention_lines(network, causal_call(network, sizes, "whole_query", "whole_key", "qkv.2",
                                           config.probability("attention_dropout"))));
  attention.add(linear_line("dense", "", sizes.hidden, bias));

  plain_network(network, "dense_h_to_4h", "dense_4h_to_h", sizes, "hidden_act", true);

  LayerLines& layer = network.text.block("decoder_layer");
  layer.add(layer_norm_line("input_layernorm", "input.0", sizes.eps));
  layer.add(fmt::format("self_attn: {{name: attention, from: [input_layernorm, {}]}}",
                        attention_inputs(network)));
  layer.add(dropped_line("attention_dropped", "", dropout));
  if (config.boolean("use_parallel_residual")) {
    layer.add(layer_norm_line("post_attention_layernorm", "input.0", sizes.eps));
    layer.add("mlp: {name: mlp, from: post_attention_layernorm}");
    layer.add(dropped_line("fed", "", dropout));
    layer.add("add: {name: both, from: [fed, attention_dropped]}");
    layer.add("add: {name: done, from: [both, input.0]}");
  } else {
    layer.add("add: {name: attended, from: [attention_dropped, input.0]}");
    layer.add(layer_norm_line("post_attention_layernorm", "", sizes.eps));
    layer.add("mlp: {name: mlp, from: post_attention_layernorm}");
    layer.add(dropped_line("fed", "", dropout));
    layer.add("add: {name: done, from: [fed, attended]}");
  }

  LayerLines& base = network.text.block("decoder");
  base.add(fmt::format("embedding: {{name: embed_in, from: input, count: {}, features: {}}}",
                       sizes.vocabulary, sizes.hidden));
  base.add(causal_mask_lines(network, 0));
  base.add(dropped_line("embedded", "embed_in", dropout));
  base.add(fmt::format("rotary_table: {{name: rotary_emb, length: seq, features: {}, base: {}}}",
                       rotated, rotary.base));
  base.add(
      fmt::format("decoder_layer: {{name: layers, from: [embedded, rotary_emb.0, "
                  "rotary_emb.1{}], repeat: layers, checkpoint: checkpoint}}",
                  mask_input(network)));
  base.add(layer_norm_line("final_layer_norm", "", sizes.eps));
  network.text.layers().add("decoder: {name: gpt_neox, from: tokens}");
  const bool tied = config.boolean("tie_word_embeddings");
  finish_head(network, sizes, "gpt_neox", false, tied ? "gpt_neox.embed_in.weight" : "", "lm_head");
}

namespace {

struct FalconKeys {
  bool alibi = false, grouped = false, one_key_head = false, parallel = true, bias = false;
  int norms = 1;
  std::int64_t key_heads = 1;
  double hidden_dropout = 0, attention_dropout = 0;
};

FalconKeys read_falcon(ConfigReader& config, Sizes& sizes) {
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
void add_falcon_projections(LayerLines& layers, const Sizes& sizes, const FalconKeys& keys) {
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

void write_falcon_layer(Network& network, const Sizes& sizes, const FalconKeys& keys,
                        std::string_view inputs) {
  LayerLines& layer = network.text.block("decoder_layer");
  const bool two_norms = keys.grouped && keys.norms == 2;
  const bool side_by_side = keys.grouped || keys.parallel;
  std::string own = "input_layernorm", fed = "input_layernorm";
  if (two_norms) {
    own = "ln_attn";
    fed = "ln_mlp";
    layer.add(layer_norm_line("ln_attn", "input.0", sizes.eps));
    layer.add(layer_norm_line("ln_mlp", "input.0", sizes.eps));
  } else {
    layer.add(layer_norm_line("input_layernorm", "input.0", sizes.eps));
  }
  layer.add(fmt::format("self_attention: {{name: self_attention, from: [{}, {}]}}", own, inputs));
  std::string residual = "input.0";
  if (!side_by_side) {
    layer.add(dropped_line("attention_dropped", "", keys.attention_dropout));
    layer.add("add: {name: attended, from: [input.0, attention_dropped]}");
    layer.add(layer_norm_line("post_attention_layernorm", "", sizes.eps));
    residual = "attended";
    fed = "post_attention_layernorm";
  }
  layer.add(fmt::format("mlp: {{name: mlp, from: {}}}", fed));
  if (side_by_side) layer.add("add: {name: both, from: [mlp, self_attention], in_place: true}");
  layer.add(dropped_line("dropped", "", keys.hidden_dropout));
  layer.add(fmt::format("add: {{name: done, from: [{}, dropped]}}", residual));
}

}  // namespace

void write_falcon(Network& network) {
  ConfigReader& config = network.config;
  config.pass_over("n_embed");
  config.pass_over("apply_residual_connection_post_layernorm");
  Sizes sizes = read_sizes(config, "layer_norm_epsilon");
  const FalconKeys keys = read_falcon(config, sizes);
  const RotaryKeys rotary = read_rotary(config);
  start(network, sizes);

  LayerLines& attention = network.text.block("self_attention");
  add_falcon_projections(attention, sizes, keys);
  AttentionCall call =
      causal_call(network, sizes, "query", "key", "value", keys.alibi ? keys.attention_dropout : 0);
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
  plain_network(network, "dense_h_to_4h", "dense_4h_to_h", sizes, "activation", keys.bias);
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
  base.add(layer_norm_line("ln_f", "", sizes.eps));
  network.text.layers().add("decoder: {name: transformer, from: tokens}");
  const bool tied = config.boolean("tie_word_embeddings");
  finish_head(network, sizes, "transformer", false,
              tied ? "transformer.word_embeddings.weight" : "", "lm_head");
}

}  // namespace stowage
