// What a process takes of a card outside its allocator: the CUDA context, the kernels of cuBLAS and
// cuDNN, NCCL's buffers.
//
// Of each figure the first of these that is there:
//   1. --context;
//   2. what was measured: a calibration, then what the card's file lists, for the same runtime and
//      module loading; loaded lazily also what stowage probe --calibrate saw of a process of ours.
//      Of several the one of the latest CUDA that is not newer than asked, else the
//      oldest. Published eager contexts count for their own version of CUDA alone;
//   3. lazily loaded: the card's own context, and for each library a figure from public reports;
//      eagerly: the kernels' code in the framework's and the libraries' files (kernel_code.hpp)
//      besides.
#pragma once

#include <string>
#include <vector>

#include "estimator/base/bytes.hpp"
#include "estimator/card/card.hpp"
#include "estimator/runtime/check_settings.hpp"
#include "estimator/runtime/process_replay.hpp"
#include "estimator/step/step_graph.hpp"

namespace stowage {

/// A row that carries tensor bytes on to device bytes.
struct RuntimeRow {
  std::string name;
  Bytes bytes;
  std::string source;
};

/// The CUDA context; 0 in the ideal runtime.
[[nodiscard]] RuntimeRow context_row(const Card& card, const CheckSettings& settings);
[[nodiscard]] Bytes context_bytes(const Card& card, const CheckSettings& settings);

/// cuBLAS and cuDNN, where the step calls them.
[[nodiscard]] std::vector<LibraryLoad> library_loads(const StepGraph& graph, const Card& card,
                                                     const CheckSettings& settings);
/// Their kernels, and what NCCL takes where several GPUs train.
[[nodiscard]] std::vector<RuntimeRow> library_rows(const StepGraph& graph, const Card& card,
                                                   const CheckSettings& settings);

/// Context and libraries: what the process takes outside the runtime's allocator.
[[nodiscard]] Bytes outside_allocator(const StepGraph& graph, const Card& card,
                                      const CheckSettings& settings);

/// By how much outside_allocator may be too low, and the card's total too high, where they are by
/// rule and not measured (docs/gpus.md, "What is uncertain"). 0 in the ideal runtime.
[[nodiscard]] Bytes uncertainty_outside_allocator(const StepGraph& graph, const Card& card,
                                                  const CheckSettings& settings);

/// Bytes of the card that are left for the runtime's allocator:
/// CUDA total - in use - reserve - outside_allocator, for PyTorch in whole segments of 2 MiB. For
/// TensorFlow what one of its pools can hold. Negative where context and libraries do not fit,
/// alone or beside TensorFlow's pools.
[[nodiscard]] Bytes allocator_limit(const StepGraph& graph, const Card& card,
                                    const CheckSettings& settings);

}  // namespace stowage
