// Rules for the figures that a card file leaves out (docs/gpus.md). A file must have a name, a
// memory size and a compute capability.
//
// The rules depend on the compute capability: the threads and rates of a multiprocessor are
// NVIDIA's specification; the number of multiprocessors, the clock and the bandwidth are those of a
// typical card of that generation. Rates by rule have the right order of magnitude; totals and
// context are good to a few percent. Card::by_rule lists these figures.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "estimator/card/card.hpp"

namespace stowage {

/// The keys of a card file that were given.
using GivenKeys = std::set<std::string, std::less<>>;

/// `card` with every figure filled in that is not in `given`. Precondition: name,
/// compute_capability and one of memory, nvml_total and cuda_total are given.
[[nodiscard]] Card completed_by_rule(Card card, const GivenKeys& given);

/// The device description for cuDNN of a card for which none was recorded, with the multiprocessors
/// and the total of `card`. "" below compute capability 7.5, which cuDNN 9 for CUDA 13 does not
/// support.
[[nodiscard]] std::string cudnn_device_by_rule(const Card& card);

/// The number of threads that can be resident on a multiprocessor.
[[nodiscard]] int resident_threads(const Card& card);

/// Whether CPU and GPU share one memory (Jetson, GB10), so that copies stay within it.
[[nodiscard]] bool has_unified_memory(const Card& card);

}  // namespace stowage
