// ServingPasses: the two passes of serving: their tokens and users, and the model of each.
//
//   prefill   the prompts that fill the context; with a prefill chunk the last chunk, whose
//             keys are the most. A paged cache is filled `prefill_chunk` tokens a step, of as many
//             users as that takes (vLLM's chunked prefill); the others by all users at once
//             (generate() of transformers, its `prefill_chunk_size` where there is a chunk)
//   decode    one token of every user, which is the last that the context has room for
//
// Of an encoder-decoder (encoder_decoder.hpp) prefill is the encoder's run and the decoder's first
// step, which takes one token and writes the cross-attention's cache.
#pragma once

#include <cstdint>
#include <functional>

#include "estimator/base/diagnostic.hpp"
#include "estimator/model/model_graph.hpp"
#include "estimator/serving/serving_settings.hpp"

namespace stowage {

/// Reads the model for sequences of `positions` tokens.
using ModelAtLength = std::function<Result<ModelGraph>(std::int64_t positions)>;

struct ServingPass {
  ModelGraph model;
  std::int64_t batch = 1;    ///< number of sequences in the pass
  std::int64_t tokens = 1;   ///< new tokens of each sequence
  std::int64_t past = 0;     ///< tokens of each sequence that are already cached
  std::int64_t encoded = 0;  ///< positions of the encoder's states; 0: there is no encoder
};

struct ServingPasses {
  ServingPass prefill, decode;
};

/// Errors: those of `read`, also for the whole context, which may exceed the model's positions;
/// those of with_cache(); a model without the symbol `seq`; an encoder-decoder with a paged cache
/// or a prefill chunk, or with a fixed encoder length that differs from the one asked for.
[[nodiscard]] Result<ServingPasses> serving_passes(const ModelAtLength& read,
                                                   const ServingSettings& settings);

}  // namespace stowage
