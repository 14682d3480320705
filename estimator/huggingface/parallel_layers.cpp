#include "estimator/huggingface/parallel_layers.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace stowage {

namespace {

constexpr std::int64_t most_layers_parallel = 10'000;

}  // namespace

ParallelSizes read_parallel_sizes(ConfigReader& config, std::string_view eps_key) {
  ParallelSizes sizes;
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

std::string parallel_norm(std::string_view name, std::string_view from, double eps) {
  return fmt::format("layer_norm: {{name: {}, {}eps: {}}}", name,
                     from.empty() ? "" : fmt::format("from: {}, ", from), eps);
}

std::string parallel_drop(std::string_view name, std::string_view from, double p) {
  const std::string source = from.empty() ? "" : fmt::format("from: {}, ", from);
  if (p == 0) return fmt::format("identity: {{{}name: {}}}", source, name);
  return fmt::format("dropout: {{{}name: {}, p: {}}}", source, name, p);
}

void start_parallel(Network& network, const ParallelSizes& sizes) {
  network.text.argument("layers", fmt::format("{}", sizes.layers));
  network.text.argument("checkpoint", "false");
  sequence_symbol(network, sizes.positions, 2048);
  token_input(network);
}

void add_plain_network(Network& network, std::string_view first, std::string_view second,
                       const ParallelSizes& sizes, std::string_view activation, bool bias) {
  LayerLines& mlp = network.text.block("mlp");
  mlp.add(linear_line(first, "input", sizes.inner, bias));
  mlp.add(activation_lines(network, activation, "act"));
  mlp.add(linear_line(second, "", sizes.hidden, bias));
}

std::int64_t rotated_features(ConfigReader& config, const ParallelSizes& sizes,
                              const RotaryKeys& rotary) {
  const auto rotated = static_cast<std::int64_t>(static_cast<double>(sizes.width) * rotary.part);
  if (rotated >= 2 && rotated % 2 == 0) return rotated;
  config.wrong("num_attention_heads",
               fmt::format("rotary positions turn pairs, and {} of a head's {} features are none",
                           rotated, sizes.width));
  return 2;
}

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

void add_parallel_head(Network& network, const ParallelSizes& sizes, std::string_view base,
                       bool bias, std::string_view embedding) {
  const bool tied = network.config.boolean("tie_word_embeddings");
  if (network.head == Head::causal_lm) {
    causal_lm_head(network, base, "lm_head", sizes.vocabulary, bias,
                   tied ? fmt::format("{}.{}.weight", base, embedding) : std::string());
  } else if (network.head == Head::sequence_classification) {
    last_token_head(network, base, "score");
  }
}

void write_parallel_stack(Network& network, const ParallelSizes& sizes,
                          const ParallelStack& stack) {
  LayerLines& base = network.text.block("decoder");
  base.add(fmt::format("embedding: {{name: {}, from: input, count: {}, features: {}}}",
                       stack.embedding, sizes.vocabulary, sizes.hidden));
  base.add(causal_mask_lines(network, 0));
  base.add(parallel_drop("embedded", stack.embedding, stack.embedding_dropout));
  base.add(fmt::format("rotary_table: {{name: rotary_emb, length: seq, features: {}, base: {}}}",
                       stack.rotated, stack.base));
  base.add(
      fmt::format("decoder_layer: {{name: layers, from: [embedded, rotary_emb.0, "
                  "rotary_emb.1{}], repeat: layers, checkpoint: checkpoint}}",
                  parallel_mask(network)));
  base.add(parallel_norm(stack.final_norm, "", sizes.eps));
  network.text.layers().add(fmt::format("decoder: {{name: {}, from: tokens}}", stack.model));
  add_parallel_head(network, sizes, stack.model, stack.head_bias, stack.embedding);
}

std::string parallel_mask(const Network& network) {
  return network.attention == AttentionFunction::eager ? fmt::format(", {}", full_mask)
                                                       : std::string();
}

AttentionCall parallel_attention(const Network& network, const ParallelSizes& sizes,
                                 std::string query, std::string key, std::string value,
                                 double dropout) {
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

std::string_view parallel_attention_inputs(const Network& network) {
  return network.attention == AttentionFunction::eager ? "input.1, input.2, input.3"
                                                       : "input.1, input.2";
}

}  // namespace stowage
