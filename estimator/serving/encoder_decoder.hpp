// Encoder-decoders as transformers' generate() serves them: which of a model's operators are the
// encoder's, and the model of each of the two passes.
//
// The encoder runs once, over its whole input, and its last hidden states stay to the end. The
// decoder starts with one token. EncoderDecoderCache has two caches: the self-attention's, which
// with_cache adds (cached_model.hpp), and the cross-attention's, which the first step writes once:
// keys and values of the encoder's states. Every later step runs the decoder alone.
//
// A model is read twice, once with as many positions as the encoder has and once with the
// decoder's one, and the encoder's operators are taken from the first reading. Biases by relative
// position (T5) become as wide as what attention reads.
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
  /// By operator: it leads to the keys and values that the decoder reads of the encoder; the layers
  /// that make them of the encoder's states are among these.
  std::vector<bool> encodes;
  std::vector<bool> crosses;  ///< by operator: the decoder's attention to the encoder
  TensorId states;            ///< the encoder's last hidden states
  std::int64_t length = 0;    ///< positions of the states
};

/// nullopt: the decoder reads no encoder, or attention that is not causal stands elsewhere too.
[[nodiscard]] std::optional<EncoderDecoder> find_encoder(const ModelGraph& model);

/// Positions that the encoder has whatever the symbol `seq` is; 0: as many as `seq`. `shortest`:
/// the model read with one position.
[[nodiscard]] std::int64_t fixed_encoder_length(const ModelGraph& shortest);

/// The model of a step of one token behind `past` others, still without the self-attention's cache.
/// `encoded`: the model read with the encoder's positions; `decoded`: with one. `past` is 0: the
/// encoder runs, and the cross-attention's cache is written; else both are there before. Errors: a
/// bias of attention that does not say what it is over a cache.
[[nodiscard]] Result<ModelGraph> decoding_step(const ModelGraph& encoded, const ModelGraph& decoded,
                                               const ServingSettings& settings, std::int64_t past);

}  // namespace stowage
