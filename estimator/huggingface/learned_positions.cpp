// Decoders with learned positions: GPT-2, OPT.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "estimator/huggingface/families.hpp"
#include "estimator/huggingface/fragments.hpp"

namespace stowage {

namespace {

constexpr std::int64_t most_layers_learned = 10'000;

std::int64_t head_width(ConfigReader& config, std::string_view key, std::int64_t hidden,
                        std::int64_t heads) {
  if (hidden % heads != 0) {
    config.wrong(key,
                 fmt::format("a hidden size of {} does not divide into {} heads", hidden, heads));
  }
  return std::max<std::int64_t>(hidden / heads, 1);
}

std::string maybe_dropped(std::string_view name, double p) {
  if (p == 0) return fmt::format("identity: {{name: {}}}", name);
  return fmt::format("dropout: {{name: {}, p: {}}}", name, p);
}

AttentionCall learned_call(const Network& network, std::int64_t heads, std::int64_t width,
                           double dropout) {
  AttentionCall call{.query = "query",
                     .key = "key",
                     .value = "value",
                     .heads = heads,
                     .key_heads = heads,
                     .width = width,
                     .causal = true,
                     .dropout = dropout};
  if (network.attention == AttentionFunction::eager) call.mask = "input.1";
  return call;
}

std::string block_inputs(const Network& network, std::string_view states) {
  return network.attention == AttentionFunction::eager ? fmt::format("[{}, {}]", states, full_mask)
                                                       : fmt::format("[{}]", states);
}

std::string attention_input(const Network& network, std::string_view states) {
  return network.attention == AttentionFunction::eager ? fmt::format("[{}, input.1]", states)
                                                       : std::string(states);
}

void start_learned(Network& network, std::int64_t layers, std::int64_t positions) {
  network.text.argument("layers", fmt::format("{}", layers));
  network.text.argument("checkpoint", "false");
  sequence_symbol(network, positions, 2048);
  token_input(network);
}

}  // namespace

/// Reads the keys, then writes attention, the feed-forward network, the layer, the decoder and the
/// head.
void write_gpt2(Network& network) {
  ConfigReader& config = network.config;
  const std::int64_t vocabulary = config.integer("vocab_size");
  const std::int64_t hidden = config.integer("n_embd");
  const std::int64_t layers = config.integer("n_layer", 1, most_layers_learned);
  const std::int64_t heads = config.integer("n_head");
  const std::int64_t positions = config.integer("n_positions");
  const std::int64_t inner = config.integer_or_null("n_inner").value_or(4 * hidden);
  const double eps = config.real("layer_norm_epsilon");
  const double residual = config.probability("resid_pdrop");
  const std::int64_t width = head_width(config, "n_head", hidden, heads);
  if (config.boolean("add_cross_attention")) {
    config.wrong("add_cross_attention", "attention to another network's states is not read");
  }
  if (config.boolean("reorder_and_upcast_attn") && network.attention == AttentionFunction::eager) {
    config.wrong("reorder_and_upcast_attn", "eager attention upcast and reordered is not read");
  }
  start_learned(network, layers, positions);

  LayerLines& attention = network.text.block("attention");
  attention.add(linear_line("c_attn", "input.0", 3 * hidden));
  attention.add("split: {name: qkv, parts: 3, axis: 2}");
  for (const auto& [name, part] :
       {std::pair{"key", 1}, std::pair{"value", 2}, std::pair{"query", 0}}) {
    attention.add(
        fmt::format("reshape: {{name: {}_view, from: qkv.{}, shape: [batch, seq, {}, {}]}}", name,
                    part, heads, width));
    attention.add(fmt::format("transpose: {{name: {}, axes: [0, 2, 1, 3]}}", name));
  }
  attention.add(attention_lines(
      network, learned_call(network, heads, width, config.probability("attn_pdrop"))));
  attention.add(linear_line("c_proj", "", hidden));
  attention.add(maybe_dropped("resid_dropout", residual));

  LayerLines& mlp = network.text.block("mlp");
  mlp.add(linear_line("c_fc", "input", inner));
  mlp.add(activation_lines(network, "activation_function", "act"));
  mlp.add(linear_line("c_proj", "", hidden));
  mlp.add(maybe_dropped("dropout", residual));

  // forward() holds attn_output in a variable while the feed-forward network runs.
  LayerLines& block =
      network.text.block("transformer_block", {"modules: {rest: [attended, done]}"});
  block.add(fmt::format("layer_norm: {{name: ln_1, from: input.0, eps: {}}}", eps));
  block.add(fmt::format("attention: {{name: attn, from: {}}}", attention_input(network, "ln_1")));
  block.add("add: {name: attended, from: [attn, input.0]}");
  block.add(fmt::format("layer_norm: {{name: ln_2, eps: {}}}", eps));
  block.add("mlp: {name: mlp}");
  block.add("add: {name: done, from: [attended, mlp]}");

  // forward() has inputs_embeds and position_embeds in variables.
  LayerLines& base = network.text.block("decoder", {"modules: {rest: [embedded, ln_f], h: each}"});
  base.add(fmt::format("embedding: {{name: wte, from: input, count: {}, features: {}}}", vocabulary,
                       hidden));
  base.add(fmt::format("positions: {{length: seq, at_most: {}}}", positions));
  base.add(fmt::format("embedding: {{name: wpe, count: {}, features: {}}}", positions, hidden));
  base.add("add: {name: embedded, from: [wte, wpe]}");
  base.add(maybe_dropped("drop", config.probability("embd_pdrop")));
  base.add(causal_mask_lines(network, 0));
  base.add(fmt::format(
      "transformer_block: {{name: h, from: {}, repeat: layers, checkpoint: checkpoint}}",
      block_inputs(network, "drop")));
  base.add(fmt::format("layer_norm: {{name: ln_f, eps: {}}}", eps));
  network.text.layers().add("decoder: {name: transformer, from: tokens}");
  const bool tied = config.boolean("tie_word_embeddings");
  if (network.head == Head::causal_lm) {
    causal_lm_head(network, "transformer", "lm_head", vocabulary, false,
                   tied ? "transformer.wte.weight" : "");
  } else if (network.head == Head::sequence_classification) {
    last_token_head(network, "transformer", "score");
  }
}

namespace {

struct OptKeys {
  std::int64_t vocabulary = 1, hidden = 1, inner = 1, layers = 1, heads = 1, width = 1,
               positions = 1, embedded = 1;
  bool before = true, bias = true, affine = true;
  double dropout = 0;
};

OptKeys read_opt(ConfigReader& config) {
  OptKeys keys;
  keys.vocabulary = config.integer("vocab_size");
  keys.hidden = config.integer("hidden_size");
  keys.inner = config.integer("ffn_dim");
  keys.layers = config.integer("num_hidden_layers", 1, most_layers_learned);
  keys.heads = config.integer("num_attention_heads");
  keys.width = head_width(config, "num_attention_heads", keys.hidden, keys.heads);
  keys.positions = config.integer("max_position_embeddings");
  keys.embedded = config.integer_or_null("word_embed_proj_dim").value_or(keys.hidden);
  keys.before = config.boolean("do_layer_norm_before");
  keys.bias = config.boolean("enable_bias");
  keys.affine = config.boolean("layer_norm_elementwise_affine");
  keys.dropout = config.probability("dropout");
  config.pass_over("activation_dropout");
  if (config.probability("layerdrop") > 0) {
    config.warn("layerdrop", "layers that are left out at random are counted as run");
  }
  return keys;
}

std::string opt_norm(const OptKeys& keys, std::string_view name, std::string_view from = {}) {
  return fmt::format("layer_norm: {{name: {}{}{}}}", name,
                     from.empty() ? "" : fmt::format(", from: {}", from),
                     keys.affine ? "" : ", affine: false");
}

void write_opt_attention(Network& network, const OptKeys& keys) {
  LayerLines& layers = network.text.block("self_attn");
  layers.add(linear_line("q_proj", "input.0", keys.hidden, keys.bias));
  layers.add(fmt::format("scale: {{name: scaled_query, factor: {:.17g}}}",
                         1 / std::sqrt(static_cast<double>(keys.width))));
  layers.add(split_heads("query", keys.heads, keys.width));
  layers.add(linear_line("k_proj", "input.0", keys.hidden, keys.bias));
  layers.add(linear_line("v_proj", "input.0", keys.hidden, keys.bias));
  for (const std::string_view name : {"key", "value"}) {
    layers.add(fmt::format("reshape: {{name: {}_view, from: {}_proj, shape: [batch, seq, {}, {}]}}",
                           name, name.front(), keys.heads, keys.width));
    layers.add(fmt::format("transpose: {{name: {}, axes: [0, 2, 1, 3]}}", name));
  }
  AttentionCall call = learned_call(network, keys.heads, keys.width,
                                    network.config.probability("attention_dropout"));
  call.scale = 1;
  layers.add(attention_lines(network, call));
  layers.add(linear_line("out_proj", "", keys.hidden, keys.bias));
}

}  // namespace

/// Writes the layer, with norms before or after its parts, the decoder with its projections, and
/// the head.
void write_opt(Network& network) {
  ConfigReader& config = network.config;
  const OptKeys keys = read_opt(config);
  start_learned(network, keys.layers, keys.positions);
  write_opt_attention(network, keys);

  LayerLines& layer = network.text.block("decoder_layer");
  if (keys.before) layer.add(opt_norm(keys, "self_attn_layer_norm", "input.0"));
  layer.add(
      fmt::format("self_attn: {{name: self_attn, from: {}}}",
                  attention_input(network, keys.before ? "self_attn_layer_norm" : "input.0")));
  layer.add(maybe_dropped("attention_dropped", keys.dropout));
  layer.add("add: {name: attended, from: [input.0, attention_dropped]}");
  if (!keys.before) layer.add(opt_norm(keys, "self_attn_layer_norm"));
  layer.add(fmt::format("reshape: {{name: rows, shape: [batch * seq, {}]}}", keys.hidden));
  if (keys.before) layer.add(opt_norm(keys, "final_layer_norm"));
  layer.add(linear_line("fc1", "", keys.inner, keys.bias));
  layer.add(activation_lines(network, "activation_function", "activation_fn"));
  layer.add(linear_line("fc2", "", keys.hidden, keys.bias));
  layer.add(maybe_dropped("fed", keys.dropout));
  layer.add("add: {name: both, from: [rows, fed]}");
  layer.add(fmt::format("reshape: {{name: done, shape: [batch, seq, {}]}}", keys.hidden));
  if (!keys.before) layer.add(opt_norm(keys, "final_layer_norm"));

  // forward() has inputs_embeds and pos_embeds in variables.
  LayerLines& base =
      network.text.block("decoder", {"modules: {rest: [embedded, layers], layers: each}"});
  base.add(fmt::format(
      "embedding: {{name: embed_tokens, from: input, count: {}, features: {}, "
      "padding_index: {}}}",
      keys.vocabulary, keys.embedded, config.integer_or_null("pad_token_id", -1).value_or(-1)));
  base.add("constant: {name: position_ids, shape: [batch, seq], dtype: int64}");
  base.add(fmt::format("embedding: {{name: embed_positions, count: {}, features: {}, at_most: {}}}",
                       keys.positions + 2, keys.hidden, keys.positions));
  const bool projects = keys.embedded != keys.hidden;
  if (projects) base.add(linear_line("project_in", "embed_tokens", keys.hidden, false));
  base.add(fmt::format("add: {{name: embedded, from: [{}, embed_positions]}}",
                       projects ? "project_in" : "embed_tokens"));
  base.add(causal_mask_lines(network, 0));
  base.add(fmt::format(
      "decoder_layer: {{name: layers, from: {}, repeat: layers, checkpoint: checkpoint}}",
      block_inputs(network, "embedded")));
  if (keys.before && !config.boolean("_remove_final_layer_norm")) {
    base.add(opt_norm(keys, "final_layer_norm"));
  }
  if (projects) base.add(linear_line("project_out", "", keys.embedded, false));
  network.text.block("opt_model").add("decoder: {name: decoder, from: input}");
  network.text.layers().add("opt_model: {name: model, from: tokens}");
  const bool tied = config.boolean("tie_word_embeddings");
  if (network.head == Head::causal_lm) {
    causal_lm_head(network, "model", "lm_head", keys.vocabulary, false,
                   tied ? "model.decoder.embed_tokens.weight" : "");
  } else if (network.head == Head::sequence_classification) {
    last_token_head(network, "model", "score");
  }
}

}  // namespace stowage
