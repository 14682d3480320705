// BART and Whisper: an encoder and a decoder with learned positions, and attention from one to the
// other. BART's norms stand behind the residual sums, Whisper's before the layers; Whisper's
// encoder reads a spectrogram through two convolutions.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "estimator/huggingface/families.hpp"
#include "estimator/huggingface/fragments.hpp"

namespace stowage {

namespace {

constexpr std::int64_t most_layers_sequences = 10'000;

struct SequenceKeys {
  std::int64_t vocabulary = 1, hidden = 1, encoders = 1, decoders = 1, encoder_heads = 1,
               decoder_heads = 1, encoder_inner = 1, decoder_inner = 1, padding = -1;
  double dropout = 0, attention_dropout = 0, activation_dropout = 0;
  bool scaled = false, tied = true;
  bool whisper = false;
};

SequenceKeys read_sequences(ConfigReader& config) {
  SequenceKeys keys;
  keys.whisper = config.type() == "whisper";
  keys.vocabulary = config.integer("vocab_size");
  keys.hidden = config.integer("d_model");
  keys.encoders = config.integer("encoder_layers", 1, most_layers_sequences);
  keys.decoders = config.integer("decoder_layers", 1, most_layers_sequences);
  keys.encoder_heads = config.integer("encoder_attention_heads");
  keys.decoder_heads = config.integer("decoder_attention_heads");
  for (const auto& [key, heads] : {std::pair{"encoder_attention_heads", &keys.encoder_heads},
                                   std::pair{"decoder_attention_heads", &keys.decoder_heads}}) {
    if (keys.hidden % *heads == 0) continue;
    config.wrong(
        key, fmt::format("a hidden size of {} does not divide into {} heads", keys.hidden, *heads));
    *heads = 1;
  }
  keys.encoder_inner = config.integer("encoder_ffn_dim");
  keys.decoder_inner = config.integer("decoder_ffn_dim");
  keys.padding = config.integer_or_null("pad_token_id", -1).value_or(-1);
  if (keys.padding >= keys.vocabulary) keys.padding = -1;
  keys.dropout = config.probability("dropout");
  keys.attention_dropout = config.probability("attention_dropout");
  keys.activation_dropout = config.probability("activation_dropout");
  keys.scaled = config.boolean("scale_embedding");
  keys.tied = config.boolean("tie_word_embeddings");
  for (const std::string_view key : {"encoder_layerdrop", "decoder_layerdrop"}) {
    if (config.probability(key) > 0) {
      config.warn(key, "layers that are left out at random are counted as run");
    }
  }
  for (const std::string_view key :
       {"classif_dropout", "add_bias_logits", "add_final_layer_norm", "normalize_before",
        "normalize_embedding", "static_position_embeddings", "num_hidden_layers",
        "extra_pos_embeddings", "force_bos_token_to_be_generated", "decoder_start_token_id",
        "gradient_checkpointing", "alignment_heads", "is_multilingual", "task_to_id", "lang_to_id",
        "no_timestamps_token_id", "return_timestamps"}) {
    config.pass_over(key);
  }
  return keys;
}

std::string drop_line(std::string_view name, double p) {
  if (p == 0) return fmt::format("identity: {{name: {}}}", name);
  return fmt::format("dropout: {{name: {}, p: {}}}", name, p);
}

/// forward() has the embeddings and those of positions in variables.
constexpr std::string_view rest_of_stack = "modules: {rest: [placed, layers], layers: each}";

struct AttentionKind {
  std::string block;
  std::int64_t heads = 1;
  bool crosses = false, causal = false;
  std::string queries = "seq", keys = "seq";
};

// Inputs: the states, [the encoder's], [eager's mask].
void add_sequence_attention(Network& network, const SequenceKeys& keys, const AttentionKind& kind) {
  LayerLines& layers = network.text.block(kind.block);
  const std::int64_t width = keys.hidden / kind.heads;
  const std::string other = kind.crosses ? "input.1" : "input.0";
  const auto heads_of = [&](std::string_view name, std::string_view from, std::string_view length) {
    layers.add(fmt::format("reshape: {{name: {}_view, from: {}, shape: [batch, {}, {}, {}]}}", name,
                           from, length, kind.heads, width));
    layers.add(fmt::format("transpose: {{name: {}{}, axes: [0, 2, 1, 3]}}", name,
                           keys.whisper ? "_heads" : ""));
    if (keys.whisper) layers.add(fmt::format("contiguous: {{name: {}}}", name));
  };
  layers.add(linear_line("q_proj", "input.0", keys.hidden));
  if (keys.whisper) {
    layers.add(fmt::format("scale: {{name: scaled_query, factor: {:.17g}}}",
                           1 / std::sqrt(static_cast<double>(width))));
    heads_of("query", "scaled_query", kind.queries);
    layers.add(linear_line("k_proj", other, keys.hidden, false));
    heads_of("key", "k_proj", kind.keys);
    layers.add(linear_line("v_proj", other, keys.hidden));
    heads_of("value", "v_proj", kind.keys);
  } else {
    heads_of("query", "q_proj", kind.queries);
    layers.add(linear_line("k_proj", other, keys.hidden));
    layers.add(linear_line("v_proj", other, keys.hidden));
    heads_of("key", "k_proj", kind.keys);
    heads_of("value", "v_proj", kind.keys);
  }
  AttentionCall call{.query = "query",
                     .key = "key",
                     .value = "value",
                     .heads = kind.heads,
                     .key_heads = kind.heads,
                     .width = width,
                     .causal = kind.causal,
                     .dropout = keys.attention_dropout,
                     .scale = keys.whisper ? 1.0 : 0.0,
                     .queries = kind.queries,
                     .keys = kind.keys};
  if (kind.causal && network.attention == AttentionFunction::eager) call.mask = "input.1";
  layers.add(attention_lines(network, call));
  layers.add(linear_line("out_proj", "", keys.hidden));
}

// Whisper: norm, layer, dropout, sum. BART: layer, dropout, sum, norm. `layer` is a line with the
// name {0} of what it reads; the result is called `done`.
void add_residual(LayerLines& layers, const SequenceKeys& keys, std::string_view norm,
                  const std::string& from, const std::vector<std::string>& lines,
                  std::string_view done) {
  const std::string result = keys.whisper ? std::string(done) : fmt::format("{}_sum", done);
  if (keys.whisper) layers.add(fmt::format("layer_norm: {{name: {}, from: {}}}", norm, from));
  layers.add(lines);
  layers.add(drop_line(fmt::format("{}_dropped", done), keys.dropout));
  layers.add(fmt::format("add: {{name: {}, from: [{}, {}_dropped]}}", result, from, done));
  if (!keys.whisper) {
    layers.add(fmt::format("layer_norm: {{name: {}}}", norm));
    layers.add(fmt::format("identity: {{name: {}}}", done));
  }
}

std::vector<std::string> feed_forward_lines(Network& network, const SequenceKeys& keys,
                                            const std::string& from, std::int64_t inner) {
  std::vector<std::string> lines{
      linear_line("fc1", keys.whisper ? "final_layer_norm" : from, inner)};
  for (std::string& line : activation_lines(network, "activation_function", "activation_fn")) {
    lines.push_back(std::move(line));
  }
  lines.push_back(drop_line("activation_dropped", keys.activation_dropout));
  lines.push_back(linear_line("fc2", "", keys.hidden));
  return lines;
}

void add_sequence_layers(Network& network, const SequenceKeys& keys, const std::string& source) {
  const bool eager = network.attention == AttentionFunction::eager;
  add_sequence_attention(network, keys,
                         {.block = "encoder_attention",
                          .heads = keys.encoder_heads,
                          .queries = source,
                          .keys = source});
  add_sequence_attention(
      network, keys, {.block = "decoder_attention", .heads = keys.decoder_heads, .causal = true});
  add_sequence_attention(
      network, keys,
      {.block = "cross_attention", .heads = keys.decoder_heads, .crosses = true, .keys = source});
  const auto read = [&](std::string_view norm, const std::string& from) {
    return keys.whisper ? std::string(norm) : from;
  };
  // activation_fn(fc1(hidden_states)): the variable has what fc1 reads until both are done.
  const std::vector<std::string> expressions{"modules: {fc1_activated: [fc1, activation_fn]}"};
  LayerLines& encoder = network.text.block("encoder_layer", expressions);
  add_residual(encoder, keys, "self_attn_layer_norm", "input",
               {fmt::format("encoder_attention: {{name: self_attn, from: {}}}",
                            read("self_attn_layer_norm", "input"))},
               "attended");
  add_residual(encoder, keys, "final_layer_norm", "attended",
               feed_forward_lines(network, keys, "attended", keys.encoder_inner), "done");
  // Inputs: states, the encoder's, [eager's mask].
  LayerLines& decoder = network.text.block("decoder_layer", expressions);
  add_residual(decoder, keys, "self_attn_layer_norm", "input.0",
               {fmt::format("decoder_attention: {{name: self_attn, from: [{}{}]}}",
                            read("self_attn_layer_norm", "input.0"), eager ? ", input.2" : "")},
               "attended");
  add_residual(decoder, keys, "encoder_attn_layer_norm", "attended",
               {fmt::format("cross_attention: {{name: encoder_attn, from: [{}, input.1]}}",
                            read("encoder_attn_layer_norm", "attended"))},
               "crossed");
  add_residual(decoder, keys, "final_layer_norm", "crossed",
               feed_forward_lines(network, keys, "crossed", keys.decoder_inner), "done");
}

std::string decoder_inputs(const Network& network, std::string_view states) {
  return network.attention == AttentionFunction::eager
             ? fmt::format("[{}, input.1, {}]", states, full_mask)
             : fmt::format("[{}, input.1]", states);
}

void start_sequences(Network& network, const SequenceKeys& keys, std::int64_t positions,
                     std::int64_t usual) {
  network.text.argument("layers", fmt::format("{}", keys.encoders));
  network.text.argument("decoder_layers", fmt::format("{}", keys.decoders));
  network.text.argument("checkpoint", "false");
  sequence_symbol(network, positions, usual);
}

void sequence_loss(Network& network, const SequenceKeys& keys, std::string_view logits) {
  LayerLines& layers = network.text.layers();
  network.text.output(std::string(logits));
  layers.add(fmt::format("reshape: {{name: rows, from: {}, shape: [batch * seq, {}]}}", logits,
                         keys.vocabulary));
  layers.add("reshape: {name: targets, from: labels, shape: [batch * seq]}");
  network.text.loss("cross_entropy: {from: [rows, targets]}");
}

std::string token_line(const SequenceKeys& keys, std::string_view name, std::string_view from,
                       std::string_view tie) {
  return fmt::format(
      "embedding: {{name: {}, from: {}, count: {}, features: {}, padding_index: {}{}}}", name, from,
      keys.vocabulary, keys.hidden, keys.padding,
      tie.empty() ? "" : fmt::format(", tie: {{weight: {}}}", tie));
}

// The tokens of the labels moved by one place, the factor of the embedding, positions from 2 on.
void add_bart_stack(Network& network, const SequenceKeys& keys, std::int64_t positions,
                    bool decodes) {
  LayerLines& stack =
      network.text.block(decodes ? "decoder_stack" : "encoder_stack", {std::string(rest_of_stack)});
  stack.add(token_line(keys, "embed_tokens", decodes ? "input.0" : "input",
                       decodes ? "model.encoder.embed_tokens.weight" : ""));
  stack.add(fmt::format("scale: {{name: embedded, factor: {:.17g}}}",
                        keys.scaled ? std::sqrt(static_cast<double>(keys.hidden)) : 1.0));
  if (decodes) stack.add(causal_mask_lines(network, 0));
  // The encoder's positions, from 2 on, are made for each sample, the decoder's once.
  stack.add(fmt::format("constant: {{name: places, shape: [{}, seq], dtype: int64}}",
                        decodes ? "1" : "batch"));
  stack.add(
      fmt::format("embedding: {{name: embed_positions, count: {}, features: {}, at_most: {}}}",
                  positions + 2, keys.hidden, positions));
  stack.add("add: {name: placed, from: [embedded, embed_positions]}");
  stack.add("layer_norm: {name: layernorm_embedding}");
  stack.add(drop_line("dropped", keys.dropout));
  if (decodes) {
    stack.add(
        fmt::format("decoder_layer: {{name: layers, from: {}, repeat: decoder_layers, "
                    "checkpoint: checkpoint}}",
                    decoder_inputs(network, "dropped")));
  } else {
    stack.add("encoder_layer: {name: layers, repeat: layers, checkpoint: checkpoint}");
  }
}

}  // namespace

void write_bart(Network& network) {
  ConfigReader& config = network.config;
  const SequenceKeys keys = read_sequences(config);
  const std::int64_t positions = config.integer("max_position_embeddings");
  start_sequences(network, keys, positions, 1024);
  token_input(network);
  network.text.input("labels", "{shape: [batch, seq], dtype: int64}");
  add_sequence_layers(network, keys, "seq");
  add_bart_stack(network, keys, positions, false);
  add_bart_stack(network, keys, positions, true);
  LayerLines& model = network.text.block("bart_model");
  model.add("encoder_stack: {name: encoder, from: input.0}");
  model.add("decoder_stack: {name: decoder, from: [input.1, encoder]}");
  LayerLines& layers = network.text.layers();
  layers.add("constant: {name: moved_labels, shape: [batch, seq], dtype: int64}");
  layers.add("bart_model: {name: model, from: [tokens, moved_labels]}");
  if (network.head == Head::none) return network.text.output("model");
  layers.add(fmt::format("linear: {{name: lm_head, features: {}, bias: false{}}}", keys.vocabulary,
                         keys.tied ? ", tie: {weight: model.encoder.embed_tokens.weight}" : ""));
  layers.add(fmt::format("constant: {{name: final_logits_bias, shape: [1, {}], buffer: true}}",
                         keys.vocabulary));
  layers.add("add: {name: logits, from: [lm_head, final_logits_bias]}");
  sequence_loss(network, keys, "logits");
}

/// Writes the layers, the encoder with its convolutions, the decoder, the model of both, and the
/// head with its loss.
void write_whisper(Network& network) {
  ConfigReader& config = network.config;
  const SequenceKeys keys = read_sequences(config);
  const std::int64_t bins = config.integer("num_mel_bins");
  const std::int64_t source = config.integer("max_source_positions", 1, 1 << 24);
  const std::int64_t target = config.integer("max_target_positions");
  start_sequences(network, keys, target, 448);
  network.text.input("input_features", fmt::format("{{shape: [batch, {}, {}]}}", bins, 2 * source));
  network.text.input("labels", "{shape: [batch, seq], dtype: int64}");
  add_sequence_layers(network, keys, fmt::format("{}", source));

  LayerLines& encoder = network.text.block("encoder_stack");
  encoder.add(fmt::format(
      "conv1d: {{name: conv1, from: input, channels: {}, kernel: 3, padding: 1}}", keys.hidden));
  encoder.add("gelu: {name: act1}");
  encoder.add(fmt::format("conv1d: {{name: conv2, channels: {}, kernel: 3, stride: 2, padding: 1}}",
                          keys.hidden));
  encoder.add("gelu: {name: act2}");
  encoder.add("transpose: {name: rows, axes: [0, 2, 1]}");
  encoder.add(fmt::format("positions: {{name: places, length: {}}}", source));
  encoder.add(fmt::format("reshape: {{name: all_positions, shape: [{}]}}", source));
  encoder.add(
      fmt::format("embedding: {{name: embed_positions, count: {}, features: {}, frozen: "
                  "true}}",
                  source, keys.hidden));
  encoder.add("add: {name: placed, from: [rows, embed_positions]}");
  encoder.add(drop_line("dropped", keys.dropout));
  encoder.add("encoder_layer: {name: layers, repeat: layers, checkpoint: checkpoint}");
  encoder.add("layer_norm: {name: layer_norm}");

  LayerLines& decoder = network.text.block("decoder_stack", {std::string(rest_of_stack)});
  decoder.add(token_line(keys, "embed_tokens", "input.0", ""));
  decoder.add("constant: {name: position_ids, shape: [batch, seq], dtype: int64}");
  decoder.add(
      fmt::format("embedding: {{name: embed_positions, count: {}, features: {}, at_most: {}}}",
                  target, keys.hidden, target));
  decoder.add("add: {name: placed, from: [embed_tokens, embed_positions]}");
  decoder.add(drop_line("dropped", keys.dropout));
  decoder.add(causal_mask_lines(network, 0));
  decoder.add(
      fmt::format("decoder_layer: {{name: layers, from: {}, repeat: decoder_layers, "
                  "checkpoint: checkpoint}}",
                  decoder_inputs(network, "dropped")));
  decoder.add("layer_norm: {name: layer_norm}");
  LayerLines& model = network.text.block("whisper_model");
  model.add("encoder_stack: {name: encoder, from: input.0}");
  model.add("decoder_stack: {name: decoder, from: [input.1, encoder]}");
  LayerLines& layers = network.text.layers();
  layers.add("constant: {name: moved_labels, shape: [batch, seq], dtype: int64}");
  layers.add("whisper_model: {name: model, from: [input_features, moved_labels]}");
  if (network.head == Head::none) return network.text.output("model");
  layers.add(fmt::format("linear: {{name: proj_out, features: {}, bias: false{}}}", keys.vocabulary,
                         keys.tied ? ", tie: {weight: model.decoder.embed_tokens.weight}" : ""));
  sequence_loss(network, keys, "proj_out");
}

}  // namespace stowage
