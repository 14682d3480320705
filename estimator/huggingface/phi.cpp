// Phi: attention and feed-forward network read the same norm.
#include <fmt/format.h>

#include "estimator/huggingface/families.hpp"
#include "estimator/huggingface/parallel_layers.hpp"

namespace stowage {

/// Reads the keys, then writes attention, the feed-forward network, the layer, and the parts around
/// it.
void write_phi(Network& network) {
  ConfigReader& config = network.config;
  ParallelSizes sizes = read_parallel_sizes(config, "layer_norm_eps");
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
  start_parallel(network, sizes);

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
      attention.add(parallel_norm(fmt::format("{}_layernorm", letter),
                                  fmt::format("{}_heads", name), sizes.eps));
      attention.add(fmt::format("identity: {{name: {}}}", name));
    }
  }
  add_partial_rotation(attention, rotated, false);
  AttentionCall call = parallel_attention(network, sizes, "whole_query", "whole_key", "value",
                                          config.probability("attention_dropout"));
  call.key_heads = key_heads;
  attention.add(attention_lines(network, call));
  attention.add(linear_line("dense", "", sizes.hidden));

  add_plain_network(network, "fc1", "fc2", sizes, "hidden_act", true);

  LayerLines& layer = network.text.block("decoder_layer");
  layer.add(parallel_norm("input_layernorm", "input.0", sizes.eps));
  layer.add(fmt::format("self_attn: {{name: self_attn, from: [input_layernorm, {}]}}",
                        parallel_attention_inputs(network)));
  layer.add(parallel_drop("attention_dropped", "", residual));
  layer.add("mlp: {name: mlp, from: input_layernorm}");
  layer.add(parallel_drop("fed", "", residual));
  layer.add("add: {name: both, from: [attention_dropped, fed]}");
  layer.add("add: {name: done, from: [both, input.0]}");

  write_parallel_stack(network, sizes,
                       {.model = "model",
                        .embedding = "embed_tokens",
                        .final_norm = "final_layernorm",
                        .embedding_dropout = config.probability("embd_pdrop"),
                        .rotated = rotated,
                        .base = rotary.base,
                        .head_bias = true});
}

}  // namespace stowage
