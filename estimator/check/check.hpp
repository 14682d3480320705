// check: does a step fit a card, what takes the room, and what the runtime adds to it.
//
//   SizedStep + Card + CheckSettings -> CheckReport
//
// Fits means that the runtime completes the step on the card. For PyTorch that is a run of its
// allocator, capped at what the card has left (allocator_replay.hpp): the cache is given back where
// an allocation fails, and where a convolution's first engine finds no room the next one is taken,
// and the report names it. Peaks are those of that run; where it fails, those of a run with all the
// memory it wants. For TensorFlow it is a run of its pools beside the libraries on the same card
// (tensorflow_replay.hpp); where that fails, peaks are those of the smallest pool that would do.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/card/card.hpp"
#include "estimator/memory/footprint.hpp"
#include "estimator/runtime/runtime_run.hpp"

namespace stowage {

struct PhasePeak {
  std::string name;  ///< "after loading", "first step", "steady steps"
  Bytes tensor_bytes;
  Bytes device_bytes;
};

/// A convolution whose first engine does not fit.
struct EngineFallback {
  std::string node;
  Engine first;
  Engine taken;
};

struct CheckReport {
  bool fits = false;
  Footprint footprint;  ///< at the peak of the steady step
  RuntimeRun run;       ///< of several replicas, the footprint is that of one
  Bytes device_bytes;   ///< what the runtime reserves, the context and the libraries
  std::vector<RuntimeRow> runtime_rows;  ///< device_bytes - tensor_bytes(), row by row
  std::vector<PhasePeak> phases;
  Bytes host_bytes;                      ///< the step's inputs on the host, and all host_buffers
  std::vector<HostBuffer> host_buffers;  ///< of one GPU's process: what is offloaded
  /// Optimizer state in unified memory: not among the device bytes. It is on the device while there
  /// is room, and what has none goes to the host; the step completes with all of it there.
  Bytes managed_bytes;
  Bytes total_bytes;      ///< the card's CUDA total
  Bytes available_bytes;  ///< total - in use - reserve
  Bytes headroom;         ///< available - device bytes; negative: what is missing
  std::vector<EngineFallback> fallbacks;
  std::string culprit;  ///< where it does not fit: the node and what it needs; else empty
  WorkspaceOrigin workspace_origin = WorkspaceOrigin::none;

  /// The node at the peak.
  [[nodiscard]] const std::string& peak_at() const {
    return footprint.graph->nodes[static_cast<std::size_t>(footprint.step)].name;
  }
  [[nodiscard]] Bytes tensor_bytes() const { return footprint.total; }
  /// Of the managed bytes: those that find no room beside the peak.
  [[nodiscard]] Bytes evicted_bytes() const {
    return std::clamp(managed_bytes - headroom, Bytes(), managed_bytes);
  }
  [[nodiscard]] Bytes reserved_bytes() const { return run.reserved().most; }
};

/// The step must have been lowered for kernel_set_of(settings.runtime).
[[nodiscard]] CheckReport check(const SizedStep& step, const Card& card,
                                const CheckSettings& settings);

/// check(...).fits and no more; what a search asks.
[[nodiscard]] bool completes(const SizedStep& step, const Card& card,
                             const CheckSettings& settings);

}  // namespace stowage
