// RuntimeProcess: how a process of a runtime runs a step on a card, and what it takes of the card
// beside the step's tensors.
//
// A record of functions and facts. Each runtime fills one in a source of its own
// (pytorch_process.cpp, tensorflow_process.cpp, ...), and runtime_process.cpp has the table of
// them. Facts that need no card (names, kernels, granularity) are RuntimeTraits (base/runtime.hpp).
#pragma once

#include <optional>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/base/runtime.hpp"
#include "estimator/card/card.hpp"
#include "estimator/card/kernel_code.hpp"
#include "estimator/runtime/check_settings.hpp"
#include "estimator/runtime/process_overhead.hpp"
#include "estimator/runtime/runtime_run.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// The first PyTorch whose allocator has expandable segments (pull request 96995).
inline constexpr ReleaseVersion first_expandable_segments{2, 1};

struct RuntimeProcess {
  Runtime runtime = Runtime::ideal;

  /// Runs the step on the card, to the end or to where it fails.
  RuntimeRun (*run)(const StepOnCard& on_card) = nullptr;
  /// Whether the step completes and leaves the settings' reserve free: the shorter question, which
  /// a search asks often.
  bool (*completes)(const StepOnCard& on_card) = nullptr;

  /// What it keeps beside the step's tensors, from its own allocator; null: nothing.
  std::vector<RuntimeBuffer> (*buffers)(const StepGraph& graph, const Card& card,
                                        const CheckSettings& settings) = nullptr;
  /// allocator_limit() where `left` bytes of the card are left beside context and libraries; null:
  /// all of them.
  Bytes (*limit)(Bytes left, const StepGraph& graph, const Card& card,
                 const CheckSettings& settings) = nullptr;
  /// By node of a step: the most that its allocator holds of the card while the node runs, in the
  /// last step of `run`, which is run()'s of the same step. Null: it holds as much throughout.
  std::vector<Bytes> (*reserved_by_node)(const StepOnCard& on_card,
                                         const RuntimeRun& run) = nullptr;
  /// The rows from `tensor_bytes` to what its allocator reserves, where that is not the same; null:
  /// it always is.
  std::vector<RuntimeRow> (*allocator_rows)(const RuntimeRun& run, const CheckSettings& settings,
                                            Bytes tensor_bytes) = nullptr;
  /// A limit below 0 (context and libraries alone do not fit) is reported as the cause, since its
  /// run does not fail then. The other runtimes' runs fail at a library, or the largest tensor at
  /// the peak is reported.
  bool limit_names_cause = false;

  /// Its own kernels, which are on the card beside the context where modules are loaded eagerly.
  std::optional<KernelLibrary> own_kernels = {};
  /// Built for an older CUDA, it has cuBLAS and cuDNN linked into itself; their kernels are among
  /// its own then.
  ReleaseVersion libraries_apart_since = {};
  /// How much NCCL takes is known where several GPUs train.
  bool has_nccl_figure = true;
};

[[nodiscard]] const RuntimeProcess& process_of(Runtime runtime);

// One source each: NAME_process.cpp.
[[nodiscard]] RuntimeProcess ideal_process();
[[nodiscard]] RuntimeProcess stowage_process();
[[nodiscard]] RuntimeProcess pytorch_process();
[[nodiscard]] RuntimeProcess tensorflow_process();
[[nodiscard]] RuntimeProcess theano_process();

}  // namespace stowage
