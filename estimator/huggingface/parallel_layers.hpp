// What Phi, GPT-NeoX and Falcon share: decoders with layer norms and a plain feed-forward network
// whose attention and feed-forward network may read side by side. Lines of a description
// (description_text.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "estimator/huggingface/fragments.hpp"
#include "estimator/huggingface/rotary_keys.hpp"

namespace stowage {

struct ParallelSizes {
  std::int64_t vocabulary = 1, hidden = 1, inner = 1, layers = 1, heads = 1, width = 1,
               positions = 1;  ///< width: of a head
  double eps = 1e-5;
};
/// All but `inner`, which has another key in each family.
[[nodiscard]] ParallelSizes read_parallel_sizes(ConfigReader& config, std::string_view eps_key);

/// A layer norm, and a dropout or nothing where `p` is 0; `from` empty: of the layer before.
[[nodiscard]] std::string parallel_norm(std::string_view name, std::string_view from, double eps);
[[nodiscard]] std::string parallel_drop(std::string_view name, std::string_view from, double p);

/// The arguments, the symbol `seq` and the tokens.
void start_parallel(Network& network, const ParallelSizes& sizes);
/// The block `mlp`: two linear layers called `first` and `second`.
void add_plain_network(Network& network, std::string_view first, std::string_view second,
                       const ParallelSizes& sizes, std::string_view activation, bool bias);

/// Of a head's features; none or an odd number is a mistake.
[[nodiscard]] std::int64_t rotated_features(ConfigReader& config, const ParallelSizes& sizes,
                                            const RotaryKeys& rotary);
/// The turned features of query and key beside those that are passed: q_rot, q_pass, k_rot, k_pass.
/// `whole`: all are turned, and nothing is sliced; the results are copied all the same.
void add_partial_rotation(LayerLines& layers, std::int64_t rotated, bool whole);

/// Inputs of a layer's attention behind the states: the rotary tables and eager's mask.
[[nodiscard]] std::string_view parallel_attention_inputs(const Network& network);
/// ", causal_mask" for eager attention, or nothing.
[[nodiscard]] std::string parallel_mask(const Network& network);
[[nodiscard]] AttentionCall parallel_attention(const Network& network, const ParallelSizes& sizes,
                                               std::string query, std::string key,
                                               std::string value, double dropout);

/// `base`: the module that gives the hidden states; a head tied to `embedding` has its weight.
void add_parallel_head(Network& network, const ParallelSizes& sizes, std::string_view base,
                       bool bias, std::string_view embedding);

/// What stands around the block `decoder_layer` of Phi and GPT-NeoX.
struct ParallelStack {
  std::string_view model;  ///< the base's name beside a head
  std::string_view embedding, final_norm;
  double embedding_dropout = 0;
  std::int64_t rotated = 0;  ///< features of a head that are turned
  double base = 10000;       ///< of the rotary table
  bool head_bias = false;
};
/// The embedding, the rotary table, the layers, the last norm, and the head.
void write_parallel_stack(Network& network, const ParallelSizes& sizes, const ParallelStack& stack);

}  // namespace stowage
