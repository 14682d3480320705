// Functions that Phi, GPT-NeoX and Falcon share: decoders with layer norms and a plain feed-forward
// network, in which attention and feed-forward network may run in parallel on the same input. They
// make lines of a description (description_text.hpp).
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
/// Reads all sizes except `inner`, whose key differs between the families.
[[nodiscard]] ParallelSizes read_parallel_sizes(ConfigReader& config, std::string_view eps_key);

/// The line of a layer norm, and of a dropout (empty if `p` is 0). With an empty `from` they read
/// the previous layer.
[[nodiscard]] std::string parallel_norm(std::string_view name, std::string_view from, double eps);
[[nodiscard]] std::string parallel_drop(std::string_view name, std::string_view from, double p);

/// Declares the arguments, the symbol `seq` and the tokens.
void start_parallel(Network& network, const ParallelSizes& sizes);
/// Adds the block `mlp`: two linear layers called `first` and `second`.
void add_plain_network(Network& network, std::string_view first, std::string_view second,
                       const ParallelSizes& sizes, std::string_view activation, bool bias);

/// The number of rotated features of a head; reports 0 or an odd number.
[[nodiscard]] std::int64_t rotated_features(ConfigReader& config, const ParallelSizes& sizes,
                                            const RotaryKeys& rotary);
/// Adds the rotated features of query and key and the unrotated ones: q_rot, q_pass, k_rot, k_pass.
/// `whole`: all features are rotated and nothing is sliced, but the results are still copied.
void add_partial_rotation(LayerLines& layers, std::int64_t rotated, bool whole);

/// The inputs of a layer's attention after the hidden states: the rotary tables and eager's mask.
[[nodiscard]] std::string_view parallel_attention_inputs(const Network& network);
/// ", causal_mask" for eager attention, or nothing.
[[nodiscard]] std::string parallel_mask(const Network& network);
[[nodiscard]] AttentionCall parallel_attention(const Network& network, const ParallelSizes& sizes,
                                               std::string query, std::string key,
                                               std::string value, double dropout);

/// Adds the head. `base`: the module that returns the hidden states. A head tied to `embedding`
/// shares its weight.
void add_parallel_head(Network& network, const ParallelSizes& sizes, std::string_view base,
                       bool bias, std::string_view embedding);

/// The parts around the block `decoder_layer` of Phi and GPT-NeoX.
struct ParallelStack {
  std::string_view model;  ///< the base model's name if there is a head
  std::string_view embedding, final_norm;
  double embedding_dropout = 0;
  std::int64_t rotated = 0;  ///< rotated features of a head
  double base = 10000;       ///< of the rotary table
  bool head_bias = false;
};
/// Writes the embedding, the rotary table, the layers, the final norm, and the head.
void write_parallel_stack(Network& network, const ParallelSizes& sizes, const ParallelStack& stack);

}  // namespace stowage
