// Runtime: who runs the step, and what it takes of the card beside the step's tensors.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/allocator/allocator_settings.hpp"
#include "estimator/allocator/tensorflow_memory.hpp"
#include "estimator/base/bytes.hpp"
#include "estimator/memory/card.hpp"
#include "estimator/memory/process_replay.hpp"
#include "estimator/memory/step_memory.hpp"
#include "estimator/memory/tensorflow_replay.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

enum class Runtime {
  ideal,       ///< tensor bytes alone: no rounding, no context
  stowage,     ///< our executor: one static arena, and the context
  pytorch,     ///< eager PyTorch: its caching allocator, cuBLAS's workspaces, the context
  tensorflow,  ///< TensorFlow 2 with Keras: its BFC allocator, the context
};
inline constexpr std::array runtimes{Runtime::ideal, Runtime::stowage, Runtime::pytorch,
                                     Runtime::tensorflow};
[[nodiscard]] std::string_view to_string(Runtime runtime);
/// TensorFlow's graphs are near our own executor's (docs/tensorflow.md says where they differ).
[[nodiscard]] KernelSet kernel_set_of(Runtime runtime);

struct CheckSettings {
  Runtime runtime = Runtime::pytorch;
  Bytes in_use;                      ///< held by others on the card
  Bytes reserve;                     ///< to be left free
  std::optional<Bytes> context;      ///< instead of the card's own figure
  AllocatorSettings allocator = {};  ///< of PyTorch's allocator
  TensorFlowMemory tensorflow = {};  ///< with several logical devices: the step is a replica's
  /// What the same process keeps beside the step (evaluation.hpp); counted as tensors.
  std::vector<RuntimeBuffer> resident = {};
};

/// A row that carries tensor bytes on to device bytes.
struct RuntimeRow {
  std::string name;
  Bytes bytes;
  std::string source;
};

/// settings.resident, those of data-parallel training (partition.hpp), and the buffers that the
/// runtime keeps beside the step's tensors: cuBLAS's
/// workspaces, one for each thread that calls it (forward's, and autograd's when training).
/// 8,519,680 bytes each, and 33,554,432 from compute capability 9.0
/// (ATen/cuda/CublasHandlePool.cpp, PyTorch 2.11).
[[nodiscard]] std::vector<RuntimeBuffer> runtime_buffers(const StepGraph& graph, const Card& card,
                                                         const CheckSettings& settings);
/// The multiple to which the runtime rounds a tensor's bytes.
[[nodiscard]] Bytes runtime_granularity(Runtime runtime);

/// cuBLAS and cuDNN, where the step calls them.
[[nodiscard]] std::vector<LibraryLoad> library_loads(const StepGraph& graph, Runtime runtime);
/// Kernels that cuBLAS and cuDNN load on first use, where the step calls them, and what NCCL takes
/// where several GPUs train.
[[nodiscard]] std::vector<RuntimeRow> library_rows(const StepGraph& graph, Runtime runtime);

/// The CUDA context: settings.context, else the card's; none in the ideal runtime.
[[nodiscard]] Bytes context_bytes(const Card& card, const CheckSettings& settings);

/// Context and libraries: what the process takes outside the runtime's allocator.
[[nodiscard]] Bytes outside_allocator(const StepGraph& graph, const Card& card,
                                      const CheckSettings& settings);

/// What the card has for the runtime's own allocations:
/// CUDA total - in use - reserve - outside_allocator, for PyTorch in whole segments of 2 MiB. For
/// TensorFlow what one of its pools can hold; negative where the libraries find no room beside
/// them.
[[nodiscard]] Bytes allocator_limit(const StepGraph& graph, const Card& card,
                                    const CheckSettings& settings);

/// The card and what is taken of it beside TensorFlow's pools.
[[nodiscard]] TensorFlowCard tensorflow_card(const Card& card, const CheckSettings& settings);

}  // namespace stowage
