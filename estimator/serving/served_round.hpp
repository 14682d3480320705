// A round of serving as one step: a pass of prefill, then a pass of decode, on the same weights and
// the same cache. What is planned of it holds for both passes.
#pragma once

#include <cstdint>
#include <string_view>

#include "estimator/base/diagnostic.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// What stands in front of the names of nodes and storages that one of the passes has alone.
inline constexpr std::string_view prefill_prefix = "prefill:", decode_prefix = "decode:";

/// A lowered pass, and its batch.
struct LoweredPass {
  const StepGraph& graph;
  std::int64_t batch = 1;  ///< number of sequences
};

/// The nodes of prefill, one that takes the next tokens from its result, and the nodes of decode,
/// for these two batches alone: no size of it depends on a batch. Parameters, buffers and caches of
/// the same name and size are there once; what only one pass has bears its prefix. Layers of the
/// same path are one operator. Errors: the passes are of different models, or keep a cache that
/// each step makes anew (transformers' dynamic and quantised caches), which is not there once.
/// O(size of both graphs).
[[nodiscard]] Result<StepGraph> served_round(const LoweredPass& prefill, const LoweredPass& decode);

}  // namespace stowage
