// Encoders of text: BERT, RoBERTa, ELECTRA, DistilBERT, with the heads on them.
#include <fmt/format.h>

#include <algorithm>

#include "estimator/huggingface/families.hpp"
#include "estimator/huggingface/fragments.hpp"

namespace stowage {

namespace {

constexpr std::int64_t most_layers_encoder = 10'000;

struct EncoderKeys {
  std::int64_t vocabulary = 1, hidden = 1, inner = 1, layers = 1, heads = 1, width = 1,
               positions = 1, types = 1, embedded = 1, padding = 0;
  double dropout = 0, attention_dropout = 0, eps = 1e-12, classifier_dropout = 0;
};

std::int64_t encoder_width(ConfigReader& config, std::string_view key, std::int64_t hidden,
                           std::int64_t heads) {
  if (hidden % heads != 0) {
    config.wrong(key,
                 fmt::format("a hidden size of {} does not divide into {} heads", hidden, heads));
  }
  return std::max<std::int64_t>(hidden / heads, 1);
}

EncoderKeys read_bert(ConfigReader& config) {
  EncoderKeys keys;
  keys.vocabulary = config.integer("vocab_size");
  keys.hidden = config.integer("hidden_size");
  keys.inner = config.integer("intermediate_size");
  keys.layers = config.integer("num_hidden_layers", 1, most_layers_encoder);
  keys.heads = config.integer("num_attention_heads");
  keys.width = encoder_width(config, "num_attention_heads", keys.hidden, keys.heads);
  keys.positions = config.integer("max_position_embeddings");
  keys.types = config.integer("type_vocab_size");
  keys.embedded = config.type() == "electra" ? config.integer("embedding_size") : keys.hidden;
  keys.padding = config.integer_or_null("pad_token_id", -1).value_or(-1);
  keys.dropout = config.probability("hidden_dropout_prob");
  keys.attention_dropout = config.probability("attention_probs_dropout_prob");
  keys.eps = config.real("layer_norm_eps");
  keys.classifier_dropout =
      config.real_or_null("classifier_dropout", 0, 0.999999).value_or(keys.dropout);
  if (config.boolean("is_decoder")) {
    config.wrong("is_decoder", "an encoder that is used as a decoder is not read");
  }
  const std::string places = config.word("position_embedding_type");
  if (!places.empty() && places != "absolute") {
    config.wrong("position_embedding_type",
                 fmt::format("positions of the kind '{}' are not read", places), "absolute");
  }
  return keys;
}

std::string norm(std::string_view name, double eps) {
  return fmt::format("layer_norm: {{name: {}, eps: {}}}", name, eps);
}

std::string drop(std::string_view name, double p) {
  if (p == 0) return fmt::format("identity: {{name: {}}}", name);
  return fmt::format("dropout: {{name: {}, p: {}}}", name, p);
}

AttentionCall encoder_call(const EncoderKeys& keys) {
  return {.query = "query_heads",
          .key = "key_heads",
          .value = "value_heads",
          .heads = keys.heads,
          .key_heads = keys.heads,
          .width = keys.width,
          .dropout = keys.attention_dropout};
}

void start_encoder(Network& network, const EncoderKeys& keys, std::int64_t usable) {
  network.text.argument("layers", fmt::format("{}", keys.layers));
  network.text.argument("checkpoint", "false");
  sequence_symbol(network, usable, 512);
  token_input(network);
}

/// Whether the type is RoBERTa, or has its architecture under another name.
bool is_roberta(std::string_view type) {
  return type == "roberta" || type == "xlm-roberta" || type == "camembert";
}

// transformers gathers the types, all 0, by position; the product has the same result and size.
void add_bert_embeddings(Network& network, const EncoderKeys& keys) {
  const bool roberta = is_roberta(network.config.type());
  LayerLines& layers = network.text.block("embeddings");
  layers.add(
      fmt::format("constant: {{name: token_type_ids, shape: [1, {}], dtype: int64, buffer: "
                  "true}}",
                  keys.positions));
  layers.add(
      fmt::format("constant: {{name: position_ids, shape: [1, {}], dtype: int64, buffer: "
                  "true}}",
                  keys.positions));
  if (roberta) {
    // The positions of RoBERTa are counted from the tokens that are no padding.
    layers.add("constant: {name: places, shape: [batch, seq], dtype: int64}");
    layers.add("constant: {name: types, shape: [batch, seq], dtype: int64}");
  } else {
    layers.add("slice: {name: places, axis: 1, length: seq}");
    layers.add("slice: {name: first_types, from: token_type_ids, axis: 1, length: seq}");
    layers.add("mul: {name: gathered_types, from: [first_types, places]}");
    layers.add("expand: {name: types, shape: [batch, seq]}");
  }
  layers.add(
      fmt::format("embedding: {{name: word_embeddings, from: input, count: {}, features: {}, "
                  "padding_index: {}}}",
                  keys.vocabulary, keys.embedded, keys.padding));
  layers.add(
      fmt::format("embedding: {{name: token_type_embeddings, from: types, count: {}, "
                  "features: {}}}",
                  keys.types, keys.embedded));
  layers.add("add: {name: typed, from: [word_embeddings, token_type_embeddings]}");
  layers.add(
      fmt::format("embedding: {{name: position_embeddings, from: places, count: {}, "
                  "features: {}{}}}",
                  keys.positions, keys.embedded,
                  roberta ? fmt::format(", padding_index: {}, at_most: {}", keys.padding,
                                        keys.positions - keys.padding - 1)
                          : ""));
  layers.add("add: {name: embedded, from: [typed, position_embeddings]}");
  layers.add(norm("LayerNorm", keys.eps));
  layers.add(drop("dropout", keys.dropout));
}

void add_bert_layers(Network& network, const EncoderKeys& keys) {
  LayerLines& own = network.text.block("self_attention");
  for (const std::string_view name : {"query", "key", "value"}) {
    own.add(linear_line(name, "input", keys.hidden));
    own.add(split_heads(fmt::format("{}_heads", name), keys.heads, keys.width));
  }
  own.add(attention_lines(network, encoder_call(keys)));
  // Inputs: what is projected, what it is added to.
  LayerLines& output = network.text.block("residual_output");
  output.add(linear_line("dense", "input.0", keys.hidden));
  output.add(drop("dropped", keys.dropout));
  output.add("add: {name: added, from: [dropped, input.1]}");
  output.add(norm("LayerNorm", keys.eps));
  LayerLines& attention = network.text.block("attention");
  attention.add("self_attention: {name: self, from: input}");
  attention.add("residual_output: {name: output, from: [self, input]}");
  LayerLines& intermediate = network.text.block("intermediate");
  intermediate.add(linear_line("dense", "input", keys.inner));
  intermediate.add(activation_lines(network, "hidden_act", "act"));
  LayerLines& layer = network.text.block("encoder_layer");
  layer.add("attention: {name: attention, from: input}");
  layer.add("intermediate: {name: intermediate}");
  layer.add("residual_output: {name: output, from: [intermediate, attention]}");
  network.text.block("encoder_layers")
      .add("encoder_layer: {name: layer, from: input, repeat: layers, checkpoint: checkpoint}");
}

void masked_lm_loss(Network& network, std::int64_t vocabulary, std::string_view logits) {
  LayerLines& layers = network.text.layers();
  network.text.input("labels", "{shape: [batch, seq], dtype: int64}");
  network.text.output(std::string(logits));
  layers.add(fmt::format("reshape: {{name: rows, from: {}, shape: [batch * seq, {}]}}", logits,
                         vocabulary));
  layers.add("reshape: {name: targets, from: labels, shape: [batch * seq]}");
  network.text.loss("cross_entropy: {from: [rows, targets]}");
}

void token_classifier(Network& network, std::string_view hidden, double dropout) {
  LayerLines& layers = network.text.layers();
  layers.add(fmt::format("identity: {{name: sequence_output, from: {}}}", hidden));
  layers.add(drop("dropped", dropout));
  layers.add(linear_line("classifier", "", network.labels));
  network.text.output("classifier");
  network.text.input("labels", "{shape: [batch, seq], dtype: int64}");
  layers.add(fmt::format("reshape: {{name: rows, from: classifier, shape: [batch * seq, {}]}}",
                         network.labels));
  layers.add("reshape: {name: targets, from: labels, shape: [batch * seq]}");
  network.text.loss("cross_entropy: {from: [rows, targets]}");
}

void question_answering(Network& network, std::string_view hidden) {
  LayerLines& layers = network.text.layers();
  layers.add(linear_line("qa_outputs", hidden, 2));
  layers.add("split: {name: ends, parts: 2, axis: -1}");
  // Positions beyond the sequence are clamped, in new tensors: a padding of width 0 copies.
  for (const auto& [name, part] : {std::pair{"start", 0}, std::pair{"end", 1}}) {
    network.text.input(fmt::format("{}_positions", name), "{shape: [batch], dtype: int64}");
    layers.add(fmt::format("reshape: {{name: {}_column, from: ends.{}, shape: [batch, seq]}}", name,
                           part));
    layers.add(fmt::format("contiguous: {{name: {}_logits}}", name));
    layers.add(
        fmt::format("pad: {{name: {}_clamped, from: {}_positions, after: [0]}}", name, name));
  }
  network.text.loss(
      "- cross_entropy: {from: [start_logits, start_clamped], weight: 0.5}\n"
      "  - cross_entropy: {from: [end_logits, end_clamped], weight: 0.5}");
}

void first_token(LayerLines& layers, std::string_view from, std::int64_t features) {
  layers.add(fmt::format("slice: {{name: first_row, from: {}, axis: 1, length: 1}}", from));
  layers.add(fmt::format("reshape: {{name: first_token, shape: [batch, {}]}}", features));
}

// "dense", an activation, "out_proj" over the first token, each behind a dropout.
void classification_head(Network& network, std::string_view base, const EncoderKeys& keys,
                         std::string_view activation) {
  LayerLines& head = network.text.block("classification_head");
  first_token(head, "input", keys.hidden);
  head.add(drop("dropped", keys.classifier_dropout));
  head.add(linear_line("dense", "", keys.hidden));
  head.add(fmt::format("{}: {{name: act}}", activation));
  head.add(drop("dropped_again", keys.classifier_dropout));
  head.add(linear_line("out_proj", "", network.labels));
  network.text.layers().add(
      fmt::format("classification_head: {{name: classifier, from: {}}}", base));
  class_loss(network, "classifier");
}

void bert_heads(Network& network, const EncoderKeys& keys, bool tied) {
  LayerLines& layers = network.text.layers();
  const std::string tie =
      tied ? ", tie: {weight: bert.embeddings.word_embeddings.weight}" : std::string();
  if (network.head == Head::masked_lm) {
    LayerLines& transform = network.text.block("prediction_transform");
    transform.add(linear_line("dense", "input", keys.hidden));
    transform.add(activation_lines(network, "hidden_act", "act"));
    transform.add(norm("LayerNorm", keys.eps));
    LayerLines& predictions = network.text.block("predictions");
    predictions.add("prediction_transform: {name: transform, from: input}");
    predictions.add(fmt::format("linear: {{name: decoder, features: {}{}}}", keys.vocabulary, tie));
    network.text.block("mlm_head").add("predictions: {name: predictions, from: input}");
    layers.add("mlm_head: {name: cls, from: bert}");
    masked_lm_loss(network, keys.vocabulary, "cls");
  } else if (network.head == Head::sequence_classification) {
    layers.add(drop("dropped", keys.classifier_dropout));
    layers.add(linear_line("classifier", "", network.labels));
    class_loss(network, "classifier");
  }
}

void roberta_heads(Network& network, const EncoderKeys& keys, bool tied) {
  if (network.head == Head::masked_lm) {
    LayerLines& head = network.text.block("lm_head");
    head.add(linear_line("dense", "input", keys.hidden));
    head.add("gelu: {name: act}");
    head.add(norm("layer_norm", keys.eps));
    head.add(fmt::format("linear: {{name: decoder, features: {}{}}}", keys.vocabulary,
                         tied ? ", tie: {weight: roberta.embeddings.word_embeddings.weight}" : ""));
    network.text.layers().add("lm_head: {name: lm_head, from: roberta}");
    masked_lm_loss(network, keys.vocabulary, "lm_head");
  } else if (network.head == Head::sequence_classification) {
    classification_head(network, "roberta", keys, "tanh");
  }
}

void electra_heads(Network& network, const EncoderKeys& keys, bool tied) {
  if (network.head == Head::masked_lm) {
    LayerLines& head = network.text.block("generator_predictions");
    head.add(linear_line("dense", "input", keys.embedded));
    head.add("gelu: {name: activation}");
    head.add(norm("LayerNorm", keys.eps));
    network.text.layers().add(
        "generator_predictions: {name: generator_predictions, from: electra}");
    network.text.layers().add(
        fmt::format("linear: {{name: generator_lm_head, features: {}{}}}", keys.vocabulary,
                    tied ? ", tie: {weight: electra.embeddings.word_embeddings.weight}" : ""));
    masked_lm_loss(network, keys.vocabulary, "generator_lm_head");
  } else if (network.head == Head::sequence_classification) {
    classification_head(network, "electra", keys, "gelu");
  }
}

}  // namespace

/// Writes embeddings, layers and pooler of the base model, then the head that is asked for.
void write_bert_family(Network& network) {
  ConfigReader& config = network.config;
  const std::string& type = config.type();
  const EncoderKeys keys = read_bert(config);
  // The name of the base module in its classes.
  const std::string base_name = is_roberta(type) ? "roberta" : type;
  const bool tied = config.boolean("tie_word_embeddings");
  // RoBERTa's positions start after the padding's index.
  const std::int64_t usable = is_roberta(type)
                                  ? std::max<std::int64_t>(keys.positions - keys.padding - 1, 1)
                                  : keys.positions;
  start_encoder(network, keys, usable);
  add_bert_embeddings(network, keys);
  add_bert_layers(network, keys);
  LayerLines& base = network.text.block("text_encoder");
  base.add("embeddings: {name: embeddings, from: input}");
  if (keys.embedded != keys.hidden) base.add(linear_line("embeddings_project", "", keys.hidden));
  base.add("encoder_layers: {name: encoder}");
  const bool pools =
      type != "electra" && (network.head == Head::none ||
                            (type == "bert" && network.head == Head::sequence_classification));
  if (pools) {
    LayerLines& pooler = network.text.block("pooler");
    first_token(pooler, "input", keys.hidden);
    pooler.add(linear_line("dense", "", keys.hidden));
    pooler.add("tanh: {name: activation}");
    base.add("pooler: {name: pooler}");
  }
  network.text.layers().add(fmt::format("text_encoder: {{name: {}, from: tokens}}", base_name));
  if (network.head == Head::token_classification) {
    token_classifier(network, base_name, keys.classifier_dropout);
  } else if (network.head == Head::question_answering) {
    question_answering(network, base_name);
  } else if (type == "bert") {
    bert_heads(network, keys, tied);
  } else if (is_roberta(type)) {
    roberta_heads(network, keys, tied);
  } else {
    electra_heads(network, keys, tied);
  }
}

namespace {

constexpr double distilbert_eps = 1e-12;  // written in its modules

EncoderKeys read_distilbert(ConfigReader& config) {
  EncoderKeys keys;
  keys.vocabulary = config.integer("vocab_size");
  keys.hidden = config.integer("dim");
  keys.inner = config.integer("hidden_dim");
  keys.layers = config.integer("n_layers", 1, most_layers_encoder);
  keys.heads = config.integer("n_heads");
  keys.width = encoder_width(config, "n_heads", keys.hidden, keys.heads);
  keys.positions = config.integer("max_position_embeddings");
  keys.padding = config.integer_or_null("pad_token_id", -1).value_or(-1);
  keys.dropout = config.probability("dropout");
  keys.attention_dropout = config.probability("attention_dropout");
  config.pass_over("tie_weights_");
  config.pass_over("sinusoidal_pos_embds");
  return keys;
}

/// Writes the blocks of embeddings, attention, feed-forward network and layer, and the encoder of
/// them.
void add_distilbert_layers(Network& network, const EncoderKeys& keys) {
  LayerLines& embeddings = network.text.block("embeddings");
  embeddings.add(
      fmt::format("embedding: {{name: word_embeddings, from: input, count: {}, features: "
                  "{}, padding_index: {}}}",
                  keys.vocabulary, keys.hidden, keys.padding));
  embeddings.add(
      fmt::format("constant: {{name: position_ids, shape: [1, {}], dtype: int64, buffer: "
                  "true}}",
                  keys.positions));
  embeddings.add("slice: {name: places, axis: 1, length: seq}");
  embeddings.add(fmt::format("embedding: {{name: position_embeddings, count: {}, features: {}}}",
                             keys.positions, keys.hidden));
  embeddings.add("add: {name: embedded, from: [word_embeddings, position_embeddings]}");
  embeddings.add(norm("LayerNorm", distilbert_eps));
  embeddings.add(drop("dropout", keys.dropout));
  LayerLines& attention = network.text.block("attention");
  for (const auto& [name, letter] :
       {std::pair{"query", "q"}, std::pair{"key", "k"}, std::pair{"value", "v"}}) {
    attention.add(linear_line(fmt::format("{}_lin", letter), "input", keys.hidden));
    attention.add(split_heads(fmt::format("{}_heads", name), keys.heads, keys.width));
  }
  attention.add(attention_lines(network, encoder_call(keys)));
  attention.add(linear_line("out_lin", "", keys.hidden));
  LayerLines& ffn = network.text.block("ffn");
  ffn.add(linear_line("lin1", "input", keys.inner));
  ffn.add(activation_lines(network, "activation", "act"));
  ffn.add(linear_line("lin2", "", keys.hidden));
  ffn.add(drop("dropped", keys.dropout));
  LayerLines& layer = network.text.block("transformer_block");
  layer.add("attention: {name: attention, from: input}");
  layer.add("add: {name: attended, from: [attention, input]}");
  layer.add(norm("sa_layer_norm", distilbert_eps));
  layer.add("ffn: {name: ffn}");
  layer.add("add: {name: fed, from: [ffn, sa_layer_norm]}");
  layer.add(norm("output_layer_norm", distilbert_eps));
  network.text.block("transformer_layers")
      .add("transformer_block: {name: layer, from: input, repeat: layers, checkpoint: checkpoint}");
  LayerLines& base = network.text.block("text_encoder");
  base.add("embeddings: {name: embeddings, from: input}");
  base.add("transformer_layers: {name: transformer}");
}

}  // namespace

void write_distilbert(Network& network) {
  ConfigReader& config = network.config;
  EncoderKeys keys = read_distilbert(config);
  start_encoder(network, keys, keys.positions);
  add_distilbert_layers(network, keys);
  LayerLines& layers = network.text.layers();
  layers.add("text_encoder: {name: distilbert, from: tokens}");
  const bool tied = config.boolean("tie_word_embeddings");
  switch (network.head) {
    case Head::masked_lm:
      layers.add(linear_line("vocab_transform", "distilbert", keys.hidden));
      layers.add(activation_lines(network, "activation", "act"));
      layers.add(norm("vocab_layer_norm", distilbert_eps));
      layers.add(
          fmt::format("linear: {{name: vocab_projector, features: {}{}}}", keys.vocabulary,
                      tied ? ", tie: {weight: distilbert.embeddings.word_embeddings.weight}" : ""));
      return masked_lm_loss(network, keys.vocabulary, "vocab_projector");
    case Head::sequence_classification:
      first_token(layers, "distilbert", keys.hidden);
      layers.add(linear_line("pre_classifier", "", keys.hidden));
      layers.add("relu: {name: act}");
      layers.add(drop("dropped", config.probability("seq_classif_dropout")));
      layers.add(linear_line("classifier", "", network.labels));
      return class_loss(network, "classifier");
    case Head::token_classification:
      return token_classifier(network, "distilbert", keys.dropout);
    case Head::question_answering:
      layers.add("identity: {name: sequence_output, from: distilbert}");
      layers.add(drop("dropped", config.probability("qa_dropout")));
      return question_answering(network, "dropped");
    default:
      return;
  }
}

}  // namespace stowage
