// check: does a step fit a card, what takes the room, and what the runtime adds to it.
//
//   SizedStep + Card + CheckSettings -> CheckReport
//
// Fits means that the runtime completes the step on the card: where a convolution's first engine
// does not fit beside what is live, the next smaller one in the source's order is taken, as PyTorch
// would, and the report names it. Peaks are those of that run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/memory/card.hpp"
#include "estimator/memory/footprint.hpp"
#include "estimator/memory/sized_step.hpp"

namespace stowage {

enum class Runtime {
  ideal,    ///< tensor bytes alone: no rounding, no context
  stowage,  ///< our executor: one static arena, and the context
  pytorch,  ///< eager PyTorch: 512-byte blocks, cuBLAS's workspaces, 2 MiB segments, the context
};
[[nodiscard]] std::string_view to_string(Runtime runtime);
[[nodiscard]] KernelSet kernel_set_of(Runtime runtime);

struct CheckSettings {
  Runtime runtime = Runtime::pytorch;
  Bytes in_use;                  ///< held by others on the card
  Bytes reserve;                 ///< to be left free
  std::optional<Bytes> context;  ///< instead of the card's own figure
  /// What the same process keeps beside the step (evaluation.hpp); counted as tensors.
  std::vector<RuntimeBuffer> resident = {};
};

/// A row that carries tensor bytes on to device bytes.
struct RuntimeRow {
  std::string name;
  Bytes bytes;
  std::string source;
};

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
  std::string peak_at;  ///< the node
  Bytes tensor_bytes, reserved_bytes, device_bytes;
  std::vector<RuntimeRow> runtime_rows;  ///< device_bytes - tensor_bytes, row by row
  std::vector<PhasePeak> phases;
  Bytes host_bytes;       ///< the step's inputs on the host
  Bytes total_bytes;      ///< the card's CUDA total
  Bytes available_bytes;  ///< total - in use - reserve
  Bytes headroom;         ///< available - device bytes; negative: what is missing
  std::vector<EngineFallback> fallbacks;
  std::string culprit;  ///< where it does not fit: the node and what it needs; else empty
  WorkspaceOrigin workspace_origin = WorkspaceOrigin::none;
};

/// The step must have been lowered for kernel_set_of(settings.runtime).
[[nodiscard]] CheckReport check(const SizedStep& step, const Card& card,
                                const CheckSettings& settings);

/// settings.resident, and the buffers that the runtime keeps beside the step's tensors: cuBLAS's
/// workspaces, one for each thread that calls it (forward's, and autograd's when training).
/// 8,519,680 bytes each, and 33,554,432 from compute capability 9.0
/// (ATen/cuda/CublasHandlePool.cpp, PyTorch 2.11).
[[nodiscard]] std::vector<RuntimeBuffer> runtime_buffers(const StepGraph& graph, const Card& card,
                                                         const CheckSettings& settings);
/// The multiple to which the runtime rounds a tensor's bytes.
[[nodiscard]] Bytes runtime_granularity(Runtime runtime);

/// Kernels that cuBLAS and cuDNN load on first use, where the step calls them.
[[nodiscard]] std::vector<RuntimeRow> library_rows(const StepGraph& graph, Runtime runtime);

/// Context and libraries: what the process takes outside the runtime's allocator.
[[nodiscard]] Bytes outside_allocator(const StepGraph& graph, const Card& card,
                                      const CheckSettings& settings);

/// What the card has for the runtime's own allocations:
/// CUDA total - in use - reserve - outside_allocator, for PyTorch in whole segments of 2 MiB.
[[nodiscard]] Bytes allocator_limit(const StepGraph& graph, const Card& card,
                                    const CheckSettings& settings);

/// By NodeId: the first engine that fits beside what else is live within `limit`, the smallest one
/// where none does. `live` is without workspaces.
[[nodiscard]] std::vector<int> fitting_engines(const SizedStep& step,
                                               const std::vector<Bytes>& live, Bytes limit,
                                               Bytes granularity);

}  // namespace stowage
