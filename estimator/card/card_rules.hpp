// What a card file leaves out, by documented rule (docs/gpus.md): a file needs a name, a memory and
// a compute capability.
//
// The rules are those of the compute capability: what a multiprocessor holds and computes is
// NVIDIA's specification, the number of multiprocessors, the clock and the bandwidth are those of a
// usual card of that generation. A figure by rule is an order of magnitude for rates and good to a
// few percent for totals and context; Card::by_rule names each of them.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "estimator/card/card.hpp"

namespace stowage {

/// The keys of a card file that were given.
using GivenKeys = std::set<std::string, std::less<>>;

/// `card` with every figure that `given` lacks. name, compute_capability and one of memory,
/// nvml_total and cuda_total must be given.
[[nodiscard]] Card completed_by_rule(Card card, const GivenKeys& given);

/// What cuDNN is told about a card of which no device text is known: the multiprocessors and the
/// total are those of `card`. "" below compute capability 7.5, which cuDNN 9 for CUDA 13 does not
/// serve.
[[nodiscard]] std::string cudnn_device_by_rule(const Card& card);

/// How many threads a multiprocessor holds at once.
[[nodiscard]] int resident_threads(const Card& card);

/// Memory that CPU and GPU share (Jetson, GB10): copies stay within it.
[[nodiscard]] bool has_unified_memory(const Card& card);

}  // namespace stowage
