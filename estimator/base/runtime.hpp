// Runtime: the software that runs the step, and the facts about it that need no card.
//
// How a process of a runtime runs on a card, and what it takes there, is RuntimeProcess
// (estimator/runtime/runtime_process.hpp).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "estimator/base/bytes.hpp"
#include "estimator/base/kernel_set.hpp"

namespace stowage {

enum class Runtime {
  ideal,       ///< tensor bytes alone: no rounding, no context
  stowage,     ///< our executor: one static arena, and the context
  pytorch,     ///< eager PyTorch: its caching allocator, cuBLAS's workspaces, the context
  tensorflow,  ///< TensorFlow 2 with Keras: its BFC allocator, the context
  theano,      ///< Keras over Theano: CNMeM or libgpuarray's cache, the context
};

/// The algorithm that hands out a running step's memory (estimator/allocator/).
enum class AllocatorKind : std::uint8_t {
  none,      ///< nothing is allocated while a step runs, so that no memory is fragmented
  caching,   ///< PyTorch's caching allocator: AllocatorSettings
  bfc,       ///< TensorFlow's pools, best fit with coalescing: TensorFlowMemory
  best_fit,  ///< Theano's, CNMeM or libgpuarray's cache: TheanoMemory
};

/// Code asks for the fact that it needs, never for the runtime, so that a runtime that is added is
/// a row here and a RuntimeProcess.
struct RuntimeTraits {
  Runtime runtime = Runtime::ideal;
  std::string_view name;   ///< the word of options and files: "pytorch"
  std::string_view title;  ///< as its makers write it: "PyTorch"

  /// TensorFlow's and Theano's graphs are near our own executor's (docs/tensorflow.md and
  /// docs/theano.md list the differences).
  KernelSet kernels = KernelSet::stowage;
  /// Its kernels write their result over an argument that no later node needs, where they can. The
  /// others make room for every result that they are not told to write in place.
  bool works_in_place = false;
  /// Plans are made for it: it can be told where each tensor goes, or its kernels run as the plan's
  /// do.
  bool is_planned = false;
  /// Keras: the optimizer's variables are made before the first step, so that all steps are alike;
  /// several GPUs sum their gradients in packs (rewrite/packed_gradients.hpp).
  bool is_keras = false;
  /// Its functions keep the buffers of rewrite/theano_buffers.hpp.
  bool has_theano_buffers = false;

  AllocatorKind allocator = AllocatorKind::none;
  Bytes granularity{1};  ///< a tensor's bytes are rounded up to a multiple of it
  /// Its pools take all memory that is left on the card, whatever the step needs, unless they are
  /// told to grow.
  bool takes_whole_card = false;
  /// It is a process on a GPU: with a CUDA context, libraries' kernels, and figures that can be
  /// measured. The ideal runtime is none.
  bool has_process = true;
  /// It asks CUDA for lazy loading of kernels as soon as CUDA offers it, and does not wait for the
  /// release in which CUDA loads lazily by default (card/software_stack.hpp).
  bool requests_lazy_loading = false;
  /// The most scratch that a convolution may have, where the runtime has a limit. 0: it takes
  /// algorithms without scratch.
  std::optional<Bytes> convolution_scratch = {};

  /// SoftwareStack::pytorch says which release of it runs.
  bool has_pytorch_release = false;
  /// It can shard what it trains: DeepSpeed's ZeRO, PyTorch's FSDP.
  bool shards = false;
  /// Its steps are plain ones: one GPU, no accumulation, no choice of the optimizer's
  /// implementation, of master gradients or of cuDNN's algorithms.
  bool only_plain_steps = false;
  /// It chooses between NHWC and NCHW by itself, and is sized with NCHW.
  bool chooses_layout = false;
};

/// In the order of Runtime.
inline constexpr std::array runtime_table{
    RuntimeTraits{.runtime = Runtime::ideal,
                  .name = "ideal",
                  .title = "the ideal runtime",
                  .kernels = KernelSet::pytorch,
                  .has_process = false,
                  .shards = true},
    RuntimeTraits{.runtime = Runtime::stowage,
                  .name = "stowage",
                  .title = "Stowage",
                  .works_in_place = true,
                  .is_planned = true},
    RuntimeTraits{.runtime = Runtime::pytorch,
                  .name = "pytorch",
                  .title = "PyTorch",
                  .kernels = KernelSet::pytorch,
                  .is_planned = true,
                  .allocator = AllocatorKind::caching,
                  .granularity = Bytes(512),
                  .requests_lazy_loading = true,
                  .has_pytorch_release = true,
                  .shards = true},
    RuntimeTraits{.runtime = Runtime::tensorflow,
                  .name = "tensorflow",
                  .title = "TensorFlow",
                  .is_keras = true,
                  .allocator = AllocatorKind::bfc,
                  .granularity = Bytes(256),
                  .takes_whole_card = true,
                  .convolution_scratch = 4_GiB,  // TF_CUDNN_WORKSPACE_LIMIT_IN_MB, unless it is set
                  .chooses_layout = true},
    // dnn.conv.algo_fwd=small and algo_bwd_*=none: implicit products, without scratch but for a few
    // KiB of indices (docs/theano.md).
    RuntimeTraits{.runtime = Runtime::theano,
                  .name = "theano",
                  .title = "Theano",
                  .is_keras = true,
                  .has_theano_buffers = true,
                  .allocator = AllocatorKind::best_fit,
                  .granularity = Bytes(64),
                  .convolution_scratch = Bytes(0),
                  .only_plain_steps = true},
};

[[nodiscard]] constexpr const RuntimeTraits& traits(Runtime runtime) {
  return runtime_table[static_cast<std::size_t>(runtime)];
}

inline constexpr auto runtimes = [] {
  std::array<Runtime, runtime_table.size()> all{};
  for (std::size_t i = 0; i < runtime_table.size(); ++i) all[i] = runtime_table[i].runtime;
  return all;
}();
static_assert([] {
  for (std::size_t i = 0; i < runtime_table.size(); ++i) {
    if (static_cast<std::size_t>(runtime_table[i].runtime) != i) return false;
  }
  return true;
}());

/// The runtime where none is named.
inline constexpr Runtime default_runtime = Runtime::pytorch;
/// The runtime that gpu_probe executes and whose process a calibration measures.
inline constexpr Runtime executed_runtime = Runtime::stowage;

[[nodiscard]] constexpr std::string_view to_string(Runtime runtime) { return traits(runtime).name; }
[[nodiscard]] std::optional<Runtime> find_runtime(std::string_view name);
[[nodiscard]] constexpr KernelSet kernel_set_of(Runtime runtime) { return traits(runtime).kernels; }
[[nodiscard]] constexpr bool works_in_place(Runtime runtime) {
  return traits(runtime).works_in_place;
}
[[nodiscard]] constexpr bool is_planned(Runtime runtime) { return traits(runtime).is_planned; }
[[nodiscard]] constexpr Bytes runtime_granularity(Runtime runtime) {
  return traits(runtime).granularity;
}
/// The runtime itself, or else the planned one that has the same kernels.
[[nodiscard]] Runtime planned_in_place_of(Runtime runtime);

}  // namespace stowage
