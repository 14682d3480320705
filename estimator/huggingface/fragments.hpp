// The parts that families share: lines of a description (description_text.hpp).
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

/// "linear: {name: q_proj, from: input, features: 64, bias: false}"; `from` empty: the layer
/// before.
[[nodiscard]] std::string linear_line(std::string_view name, std::string_view from,
                                      std::int64_t features, bool bias = true);
/// [batch, seq, count * width] to [batch, count, seq, width], the last layer called `name`.
[[nodiscard]] Lines split_heads(std::string_view name, std::int64_t count, std::int64_t width,
                                std::string_view length = "seq");
/// [batch, heads, seq, width] to [batch, seq, heads * width].
[[nodiscard]] Lines joined_heads(std::int64_t features, std::string_view length = "seq");
/// One of transformers' activations (ACT2FN); an unknown one is a mistake at `key`.
/// The last layer is called `name`.
[[nodiscard]] Lines activation_lines(Network& network, std::string_view key, std::string_view name,
                                     std::string_view from = {});

struct AttentionCall {
  std::string query, key, value;  ///< layers
  std::int64_t heads = 1, key_heads = 1, width = 1;
  bool causal = false;
  double dropout = 0;
  double scale = 0;  ///< 0: 1 / sqrt(width)
  double softcap = 0;
  bool wide_softmax = false;  ///< eager: in float32, then back; attention_lines sets it by the type
  /// A layer of the masks where there are any. sdpa: booleans, used where `masked` holds; eager:
  /// numbers, added always.
  std::string mask = {};
  std::string masked = {};                    ///< a condition; empty: never
  std::string window = {};                    ///< keys that a query sees, an expression; empty: all
  std::string queries = "seq", keys = "seq";  ///< lengths
};
/// Ends with [batch, queries, heads * width], what the output projection reads.
[[nodiscard]] Lines attention_lines(const Network& network, const AttentionCall& call);

/// The masks that attention needs before the first layer: eager's numbers, and the booleans of a
/// window; each called as in the list. `window`: 0: none.
[[nodiscard]] Lines causal_mask_lines(const Network& network, std::int64_t window);
inline constexpr std::string_view full_mask = "causal_mask", window_mask = "window_mask";

/// A condition of `index` that holds for the chosen layers: "index % 2 == 0".
[[nodiscard]] std::string chosen_layers(const std::vector<bool>& chosen);

/// What is done to logits before the loss.
struct LogitsChange {
  double softcap = 0;             ///< 0: none
  std::optional<double> divisor;  ///< absent: none
};
/// Logits of all positions, changed, their loss: for a head called `name`.
void causal_lm_head(Network& network, std::string_view hidden, std::string_view name,
                    std::int64_t vocabulary, bool bias, std::string_view tied_to,
                    const LogitsChange& change = {});
/// `name` over all positions, the last one's logits, their loss.
void last_token_head(Network& network, std::string_view hidden, std::string_view name);
/// The loss of class logits [batch, labels] called `logits`: by `problem_type` and the labels.
void class_loss(Network& network, std::string_view logits);

/// The symbol `seq`, with a default of at most `usual`.
void sequence_symbol(Network& network, std::int64_t positions, std::int64_t usual);
/// "tokens" [batch, seq].
void token_input(Network& network);

}  // namespace stowage
