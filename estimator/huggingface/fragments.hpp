// Functions that families share: each makes lines of a description (description_text.hpp).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/huggingface/network.hpp"

namespace stowage {

using Lines = std::vector<std::string>;

/// "linear: {name: q_proj, from: input, features: 64, bias: false}"; with an empty `from` it reads
/// the previous layer.
[[nodiscard]] std::string linear_line(std::string_view name, std::string_view from,
                                      std::int64_t features, bool bias = true);
/// From [batch, seq, count * width] to [batch, count, seq, width]; the last layer is called `name`.
[[nodiscard]] Lines split_heads(std::string_view name, std::int64_t count, std::int64_t width,
                                std::string_view length = "seq");
/// From [batch, heads, seq, width] to [batch, seq, heads * width].
[[nodiscard]] Lines joined_heads(std::int64_t features, std::string_view length = "seq");
/// The activation that the config's `key` names, of transformers' ACT2FN; reports an unknown one at
/// `key`. The last layer is called `name`.
[[nodiscard]] Lines activation_lines(Network& network, std::string_view key, std::string_view name,
                                     std::string_view from = {});

struct AttentionCall {
  std::string query, key, value;  ///< layers
  std::int64_t heads = 1, key_heads = 1, width = 1;
  bool causal = false;
  double dropout = 0;
  double scale = 0;  ///< 0: 1 / sqrt(width)
  double softcap = 0;
  /// Eager: softmax in float32; attention_lines sets it by the model type.
  bool wide_softmax = false;
  /// Eager: how long the softmax's result is held in inference; attention_lines sets it by the
  /// version.
  std::string_view held = "module";
  /// Fused: key heads are repeated for a single query with a mask, too; attention_lines sets it by
  /// the version.
  bool repeats_for_one_query = false;
  /// The layer with the mask, if there is one. sdpa: booleans, used where the condition `masked`
  /// holds; eager: numbers, always added.
  std::string mask = {};
  std::string masked = {};  ///< a condition; empty: never
  std::string sinks = {};   ///< the layer with a learned score a head; empty: none
  std::string window = {};  ///< number of keys that a query sees, an expression; empty: all
  std::string queries = "seq", keys = "seq";  ///< lengths
};
/// How long eager attention's weights are held in inference (the attribute `held` of softmax).
[[nodiscard]] std::string_view held_weights(const Network& network);
/// The last layer has the shape [batch, queries, heads * width], which the output projection reads.
[[nodiscard]] Lines attention_lines(const Network& network, const AttentionCall& call);

/// The masks that attention needs, computed before the first layer: eager's numbers, or the
/// booleans of a window. Their names are full_mask and window_mask. `window`: 0: none.
[[nodiscard]] Lines causal_mask_lines(const Network& network, std::int64_t window);
inline constexpr std::string_view full_mask = "causal_mask", window_mask = "window_mask";

/// An expression in `index` that is true for the chosen layers: "index % 2 == 0".
[[nodiscard]] std::string chosen_layers(const std::vector<bool>& chosen);

/// What is done to the logits before the loss.
struct LogitsChange {
  double softcap = 0;             ///< 0: none
  std::optional<double> divisor;  ///< absent: none
};
/// Adds a head called `name`: the logits of all positions, with `change` applied, and their loss.
void causal_lm_head(Network& network, std::string_view hidden, std::string_view name,
                    std::int64_t vocabulary, bool bias, std::string_view tied_to,
                    const LogitsChange& change = {});
/// Adds a linear layer `name` over all positions, the last position's logits, and their loss.
void last_token_head(Network& network, std::string_view hidden, std::string_view name);
/// Adds the loss of the class logits [batch, labels] in the layer `logits`, by `problem_type` and
/// the number of labels.
void class_loss(Network& network, std::string_view logits);

/// Declares the symbol `seq`, with a default of at most `usual`.
void sequence_symbol(Network& network, std::int64_t positions, std::int64_t usual);
/// Declares the input "tokens" [batch, seq].
void token_input(Network& network);

}  // namespace stowage
