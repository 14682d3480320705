// Serving of encoder-decoders by transformers' generate(): finds the encoder's operators, and makes
// the model of each of the two passes.
//
// The encoder runs once, over its whole input, and its last hidden states are kept to the end. The
// decoder starts with one token. EncoderDecoderCache has two caches: the self-attention's, which
// with_cache adds (cached_model.hpp), and the cross-attention's, which the first step writes once:
// keys and values of the encoder's states. Every later step runs the decoder alone.
//
// A model is read twice, with the encoder's number of positions and with the decoder's single one,
// and the encoder's operators are taken from the first reading. Relative position biases (T5) are
// widened to the number of keys that attention reads.
//
// Source: transformers 5.24, cache_utils.py (EncoderDecoderCache), generation/utils.py,
// models/{t5,bart,whisper}; traced (tests/reference/serving_encoders.py).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/model_graph.hpp"
#include "estimator/serving/serving_settings.hpp"

namespace stowage {

struct EncoderDecoder {
  /// By operator: the keys and values of the cross-attention depend on it. This includes the layers
  /// that compute them from the encoder's states.
  std::vector<bool> encodes;
  std::vector<bool> crosses;  ///< by operator: it is a cross-attention
  TensorId states;            ///< the encoder's last hidden states
  std::int64_t length = 0;    ///< number of positions of the states
};

/// nullopt: there is no cross-attention, or there is other attention that is not causal.
[[nodiscard]] std::optional<EncoderDecoder> find_encoder(const ModelGraph& model);

/// The encoder's number of positions if it does not depend on the symbol `seq`; 0: it is `seq`.
/// `shortest`: the model read with one position.
[[nodiscard]] std::int64_t fixed_encoder_length(const ModelGraph& shortest);

/// The model of a step of one token after `past` others, without the self-attention's cache.
/// `encoded`: the model read with the encoder's positions; `decoded`: with one position. If `past`
/// is 0 the step runs the encoder and writes the cross-attention's cache; else both exist from an
/// earlier step. Errors: a bias of attention that cannot be widened to a cache.
[[nodiscard]] Result<ModelGraph> decoding_step(const ModelGraph& encoded, const ModelGraph& decoded,
                                               const ServingSettings& settings, std::int64_t past);

}  // namespace stowage
