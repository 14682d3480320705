// T5 and its later form (1.1, FLAN): an encoder and a decoder whose attention has a learned bias by
// distance, made by the first layer of each stack and used by all of its layers.
//
// Before transformers had fused attention for T5, the bias was added to the scores as a tensor;
// then it went to PyTorch as a transposed view, which leaves plain products and a softmax; then as
// a copy. The relative attention's table belongs to the first layer's attention in transformers;
// here it is a layer of the stack, since all layers read its result.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "estimator/huggingface/families.hpp"
#include "estimator/huggingface/fragments.hpp"

namespace stowage {

namespace {

struct T5Keys {
  std::int64_t vocabulary = 1, hidden = 1, inner = 1, heads = 1, width = 1, encoders = 1,
               decoders = 1, buckets = 32, distance = 128;
  double dropout = 0, eps = 1e-6;
  bool gated = false, scaled = true;
};

constexpr std::int64_t most_layers_t5 = 10'000;

T5Keys read_t5(ConfigReader& config) {
  T5Keys keys;
  keys.vocabulary = config.integer("vocab_size");
  keys.hidden = config.integer("d_model");
  keys.inner = config.integer("d_ff");
  keys.heads = config.integer("num_heads", 1, 65536);
  keys.width = config.integer("d_kv");
  keys.encoders = config.integer("num_layers", 1, most_layers_t5);
  keys.decoders =
      config.integer_or_null("num_decoder_layers", 1, most_layers_t5).value_or(keys.encoders);
  keys.buckets = config.integer("relative_attention_num_buckets", 4, 1 << 24);
  keys.distance = config.integer("relative_attention_max_distance", 1);
  keys.dropout = config.probability("dropout_rate");
  keys.eps = config.real("layer_norm_epsilon");
  // The weights are always tied; false says that the decoder's states are not scaled (T5 1.1).
  if (const YamlNode* tied = config.written("tie_word_embeddings")) {
    keys.scaled = tied->text != "false";
  }
  config.pass_over("n_positions");
  config.pass_over("output_past");
  config.pass_over("tie_word_embeddings");
  config.pass_over("is_gated_act");
  config.pass_over("dense_act_fn");
  return keys;
}

std::string t5_drop(std::string_view name, double p) {
  if (p == 0) return fmt::format("identity: {{name: {}}}", name);
  return fmt::format("dropout: {{name: {}, p: {}}}", name, p);
}

std::string t5_norm(const T5Keys& keys, std::string_view name, std::string_view from) {
  return fmt::format("rms_norm: {{name: {}, from: {}, implementation: composite_t5, eps: {}}}",
                     name, from, keys.eps);
}

/// How attention reads its learned bias. Writing a causal mask into a copy does not help the fused
/// kernels, since the copy has the original's strides.
std::string_view learned_bias(const LibraryVersion& version) {
  return copies_position_bias(version) ? ", copy_bias: true" : ", implementation: math";
}

// Inputs: the normed states, what is attended to, the bias.
void add_attention(Network& network, const T5Keys& keys, std::string block, bool causal,
                   bool learned) {
  LayerLines& layers = network.text.block(std::move(block));
  for (const auto& [name, letter, from] :
       {std::tuple{"query", "q", "input.0"}, std::tuple{"key", "k", "input.1"},
        std::tuple{"value", "v", "input.1"}}) {
    layers.add(linear_line(letter, from, keys.heads * keys.width, false));
    layers.add(split_heads(name, keys.heads, keys.width));
  }
  if (network.attention == AttentionFunction::eager) {
    AttentionCall call{.query = "query",
                       .key = "key",
                       .value = "value",
                       .heads = keys.heads,
                       .key_heads = keys.heads,
                       .width = keys.width,
                       .dropout = keys.dropout,
                       .scale = 1,
                       .mask = "input.2"};
    layers.add(attention_lines(network, call));
  } else {
    layers.add(
        fmt::format("scaled_dot_product_attention: {{name: attention, from: [query, key, "
                    "value, input.2], scale: 1.0{}{}{}}}",
                    keys.dropout > 0 ? fmt::format(", dropout: {}", keys.dropout) : "",
                    causal ? ", causal: true" : "", learned ? learned_bias(network.version) : ""));
    layers.add(joined_heads(keys.heads * keys.width));
  }
  layers.add(linear_line("o", "", keys.hidden, false));
}

void add_feed_forward(Network& network, const T5Keys& keys, bool gated) {
  ConfigReader& config = network.config;
  LayerLines& dense = network.text.block("dense");
  const std::string act = config.word("feed_forward_proj");
  const std::string kind = act.substr(act.find('-') == std::string::npos ? 0 : act.find('-') + 1);
  const std::string op = kind == "relu" ? "relu: {name: act}"
                         : kind == "gelu" && gated
                             ? "gelu: {name: act, approximate: tanh_composite}"
                         : kind == "gelu"     ? "gelu: {name: act}"
                         : kind == "silu"     ? "silu: {name: act}"
                         : kind == "gelu_new" ? "gelu: {name: act, approximate: tanh_composite}"
                                              : "";
  if (op.empty() || (act != kind && act != "gated-" + kind)) {
    config.wrong("feed_forward_proj", fmt::format("'{}' is not one of those that are read", act),
                 "relu, gelu, gelu_new or silu, alone or behind gated-");
    return;
  }
  if (gated) {
    dense.add(linear_line("wi_0", "input", keys.inner, false));
    dense.add(op);
    dense.add(linear_line("wi_1", "input", keys.inner, false));
    dense.add("mul: {name: gated, from: [act, wi_1]}");
  } else {
    dense.add(linear_line("wi", "input", keys.inner, false));
    dense.add(op);
  }
  dense.add(t5_drop("dropped", keys.dropout));
  dense.add(linear_line("wo", "", keys.hidden, false));
  LayerLines& feed = network.text.block("feed_forward");
  feed.add(t5_norm(keys, "layer_norm", "input"));
  feed.add("dense: {name: DenseReluDense}");
  feed.add(t5_drop("dropped", keys.dropout));
  feed.add("add: {name: done, from: [input, dropped]}");
}

/// A residual layer with attention: `name` is the module's, as "SelfAttention".
void add_attention_layer(Network& network, const T5Keys& keys, std::string block,
                         std::string_view attention, std::string_view name, bool crosses) {
  LayerLines& layers = network.text.block(std::move(block));
  layers.add(t5_norm(keys, "layer_norm", "input.0"));
  layers.add(fmt::format("{}: {{name: {}, from: [layer_norm, {}, {}]}}", attention, name,
                         crosses ? "input.1" : "layer_norm", crosses ? "input.2" : "input.1"));
  layers.add(t5_drop("dropped", keys.dropout));
  layers.add("add: {name: done, from: [input.0, dropped]}");
}

std::string bias_line(const T5Keys& keys, bool both_ways) {
  return fmt::format(
      "relative_position_buckets: {{name: relative_attention_bias, heads: {}, "
      "queries: seq, keys: seq, buckets: {}, max_distance: {}{}}}",
      keys.heads, keys.buckets, keys.distance, both_ways ? "" : ", bidirectional: false");
}

void add_encoder(Network& network, const T5Keys& keys) {
  LayerLines& block = network.text.block("encoder_block");
  block.add("self_attention_layer: {name: layer_0, from: [input.0, input.1]}");
  block.add("feed_forward: {name: layer_1}");
  LayerLines& stack = network.text.block("encoder_stack");
  stack.add("identity: {name: embedded, from: input}");
  stack.add(t5_drop("dropped", keys.dropout));
  stack.add(bias_line(keys, true));
  stack.add(
      "encoder_block: {name: block, from: [dropped, relative_attention_bias], repeat: layers, "
      "checkpoint: checkpoint}");
  stack.add(t5_norm(keys, "final_layer_norm", "block"));
  stack.add(t5_drop("encoded", keys.dropout));
}

void add_decoder(Network& network, const T5Keys& keys) {
  const bool eager = network.attention == AttentionFunction::eager;
  LayerLines& block = network.text.block("decoder_block");
  // Inputs: states, the encoder's, the bias, the bias of attention to the encoder.
  block.add("causal_attention_layer: {name: layer_0, from: [input.0, input.2]}");
  block.add("cross_attention_layer: {name: layer_1, from: [layer_0, input.1, input.3]}");
  block.add("feed_forward: {name: layer_2}");
  LayerLines& stack = network.text.block("decoder_stack");
  stack.add("identity: {name: embedded, from: input.0}");
  stack.add(t5_drop("dropped", keys.dropout));
  if (eager) {
    stack.add(bias_line(keys, false));
    stack.add("constant: {name: causal_mask, shape: [batch, 1, seq, seq], causal: true}");
    stack.add("add: {name: masked_bias, from: [relative_attention_bias, causal_mask]}");
  } else {
    stack.add(bias_line(keys, false));
    stack.add("identity: {name: masked_bias}");
  }
  stack.add(fmt::format("constant: {{name: no_bias, shape: [1, {}, seq, seq], dtype: lower}}",
                        keys.heads));
  stack.add(
      "decoder_block: {name: block, from: [dropped, input.1, masked_bias, no_bias], repeat: "
      "decoder_layers, checkpoint: checkpoint}");
  stack.add(t5_norm(keys, "final_layer_norm", "block"));
  stack.add(t5_drop("decoded", keys.dropout));
}

}  // namespace

/// Writes the three kinds of attention with their layers, the feed-forward network, both stacks,
/// then the model: shared embedding, encoder, decoder on the shifted labels, output layer and loss.
void write_t5(Network& network) {
  ConfigReader& config = network.config;
  const T5Keys keys = read_t5(config);
  const bool gated = config.word("feed_forward_proj").starts_with("gated-");
  network.text.argument("layers", fmt::format("{}", keys.encoders));
  network.text.argument("decoder_layers", fmt::format("{}", keys.decoders));
  network.text.argument("checkpoint", "false");
  sequence_symbol(network, 512, 512);
  token_input(network);
  network.text.input("labels", "{shape: [batch, seq], dtype: int64}");
  add_attention(network, keys, "self_attention", false, true);
  add_attention(network, keys, "causal_attention", true, true);
  add_attention(network, keys, "cross_attention", false, false);
  add_attention_layer(network, keys, "self_attention_layer", "self_attention", "SelfAttention",
                      false);
  add_attention_layer(network, keys, "causal_attention_layer", "causal_attention", "SelfAttention",
                      false);
  add_attention_layer(network, keys, "cross_attention_layer", "cross_attention", "EncDecAttention",
                      true);
  add_feed_forward(network, keys, gated);
  add_encoder(network, keys);
  add_decoder(network, keys);
  LayerLines& layers = network.text.layers();
  layers.add(fmt::format("embedding: {{name: shared, from: tokens, count: {}, features: {}}}",
                         keys.vocabulary, keys.hidden));
  layers.add("encoder_stack: {name: encoder, from: shared}");
  layers.add("constant: {name: moved_labels, shape: [batch, seq], dtype: int64}");
  layers.add(
      fmt::format("embedding: {{name: decoder_tokens, count: {}, features: {}, tie: {{weight: "
                  "shared.weight}}}}",
                  keys.vocabulary, keys.hidden));
  layers.add("decoder_stack: {name: decoder, from: [decoder_tokens, encoder]}");
  if (keys.scaled) {
    layers.add(fmt::format("scale: {{name: scaled, factor: {:.17g}}}",
                           1 / std::sqrt(static_cast<double>(keys.hidden))));
  }
  // From 5.0 on the output layer is the embedding whatever the file says.
  const bool tied = keys.scaled || network.version >= LibraryVersion{5, 0};
  layers.add(fmt::format("linear: {{name: lm_head, features: {}, bias: false{}}}", keys.vocabulary,
                         tied ? ", tie: {weight: shared.weight}" : ""));
  layers.add(fmt::format("reshape: {{name: logits, shape: [batch * seq, {}]}}", keys.vocabulary));
  layers.add("reshape: {name: targets, from: labels, shape: [batch * seq]}");
  network.text.loss("cross_entropy: {from: [logits, targets]}");
}

}  // namespace stowage
