// Decoders of the LLaMA kind: norms before attention and feed-forward network, rotary positions,
// and a gated feed-forward network or experts. DecoderShape holds everything in which they differ.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "estimator/huggingface/network.hpp"

namespace stowage {

/// A mixture of experts in place of a feed-forward network.
struct ExpertsShape {
  std::int64_t count = 0;       ///< experts
  std::int64_t chosen = 0;      ///< experts that a token uses
  std::int64_t inner = 0;       ///< features between an expert's two products
  std::int64_t shared = 0;      ///< features of the expert that all tokens use; 0: none
  bool normalized = true;       ///< the chosen experts' weights are divided by their sum
  bool clamped = false;         ///< gpt-oss: biases, and the form `clamped` of routed_experts
  double limit = 0, alpha = 0;  ///< clamped: of the gate
  std::vector<bool> layers;     ///< which layers have experts
};

struct DecoderShape {
  std::int64_t vocabulary = 1, hidden = 1, inner = 1, layers = 1;
  std::int64_t heads = 1, key_heads = 1, width = 1;  ///< width: of a head
  std::int64_t positions = 1;
  bool query_bias = false;   ///< of query, key and value projections
  bool output_bias = false;  ///< of attention's output projection
  bool mlp_bias = false;
  std::string activation_key = "hidden_act";
  double attention_dropout = 0, hidden_dropout = 0, embedding_dropout = 0;
  enum class Norm { rms, gemma, layer, wide } norm = Norm::rms;
  double eps = 1e-6;
  enum class HeadNorm {
    none,
    before_transpose,
    after_transpose,
    each_head
  } head_norm = HeadNorm::none;
  bool fused_projections = false;  ///< qkv_proj and gate_up_proj, as Phi-3 has them
  bool sandwich = false;           ///< Gemma: norms also after attention and feed-forward network
  bool parallel = false;  ///< StableLM: attention and feed-forward network read the same norm
  bool scaled_embedding = false;  ///< Gemma: embeddings times sqrt(hidden)
  bool gated = true;              ///< else c_fc and c_proj, as Starcoder 2 has them
  bool drops_attention = false;   ///< hidden_dropout also after attention
  /// Granite: factors of the embeddings, and of the values that a layer adds to its input; absent:
  /// none.
  std::optional<double> embedding_factor, residual_factor;
  std::optional<double> logits_divisor;  ///< Granite
  enum class Rotation {
    whole,    ///< all features of a head
    outside,  ///< part of a head's features; the caller concatenates
    inside,   ///< part of them; the function concatenates, even if all are rotated
  } rotation = Rotation::whole;
  std::int64_t rotated = 0;  ///< rotated features of a head
  double base = 10000;
  std::optional<double> local_base;  ///< Gemma 3: of sliding layers
  bool single_angles = false;        ///< rotary tables have each angle once
  bool sinks = false;                ///< a learned score of each head beside the keys'
  double scale = 0;                  ///< of scores; 0: 1 / sqrt(width)
  double softcap = 0, final_softcap = 0;
  std::int64_t window = 0;    ///< 0: none
  std::vector<bool> sliding;  ///< by layer: it has the window
  bool tied = false;
  std::optional<ExpertsShape> experts;
};

void write_decoder(Network& network, const DecoderShape& shape);

/// The lines of a feed-forward network that reads the block's input.
[[nodiscard]] std::vector<std::string> feed_forward_lines(Network& network,
                                                          const DecoderShape& shape,
                                                          std::int64_t inner);
/// Writes the block `mlp` with experts for the layers that have them.
void write_experts(Network& network, const DecoderShape& shape);

/// A norm of the shape's kind; with an empty `from` it reads the previous layer.
[[nodiscard]] std::string norm_line(const DecoderShape& shape, std::string_view name,
                                    std::string_view from);

/// Readers of the families' keys.
[[nodiscard]] DecoderShape read_llama(Network& network);
[[nodiscard]] DecoderShape read_qwen(Network& network);
[[nodiscard]] DecoderShape read_granite(Network& network);
[[nodiscard]] DecoderShape read_starcoder2(Network& network);
[[nodiscard]] DecoderShape read_first_gemma(Network& network);
[[nodiscard]] DecoderShape read_gemma(Network& network);
[[nodiscard]] DecoderShape read_phi3(Network& network);
[[nodiscard]] DecoderShape read_stablelm(Network& network);
[[nodiscard]] DecoderShape read_gpt_oss(Network& network);

}  // namespace stowage
