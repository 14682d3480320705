// TensorFlowReplay: a process that trains or infers with TensorFlow, on a card that its pools share
// with the CUDA context and the libraries.
//
// In this order the card is taken, which decides who finds no room:
//   1. the context, when the device is made; the limits follow from what is free then;
//   2. the pools, at their first allocation, a variable's: the whole limit, unless they grow.
//      Keras makes the optimizer's variables before the first step, so that all steps are alike;
//   3. cuBLAS and cuDNN, at the first kernel that calls them.
// Several logical devices have a replica each, one after the other in each of these stages; the
// libraries' handles are the card's, and shared.
//
// Before its first call each distinct convolution is timed with every candidate: into a copy of its
// result, with the candidate's scratch, both between redzones of 8 MiB on either side
// (core/kernels/conv_ops*.cc, with stream_executor's RedzoneAllocator). A pool that grows keeps
// what that took. A convolution whose scratch finds no room takes the next engine: such candidates
// drop out when they are timed.
#pragma once

#include <string>
#include <vector>

#include "estimator/allocator/tensorflow_memory.hpp"
#include "estimator/memory/step_memory.hpp"
#include "estimator/runtime/process_replay.hpp"

namespace stowage {

/// A card as a TensorFlow process finds it.
struct TensorFlowCard {
  Bytes total;   ///< CUDA's
  Bytes in_use;  ///< by others
  Bytes context;
  int compute_capability_major = 0;
};

struct TensorFlowReplay {
  std::vector<Bytes> limits;            ///< by logical device; none: the context found no room
  std::vector<ProcessReplay> replicas;  ///< by logical device, up to the first that failed

  /// None: the process ran.
  [[nodiscard]] const ProcessReplay::Failure* failure() const;
  [[nodiscard]] bool completed() const { return failure() == nullptr; }
  [[nodiscard]] Bytes pools() const;  ///< of all replicas, at their largest
};

/// O(replicas * steps * touches * log blocks).
[[nodiscard]] TensorFlowReplay replay_tensorflow(const SizedStep& step,
                                                 const std::vector<Touches>& touches,
                                                 const std::vector<RuntimeBuffer>& buffers,
                                                 const std::vector<LibraryLoad>& libraries,
                                                 const TensorFlowCard& card,
                                                 const TensorFlowMemory& memory);

/// The most that each pool can come to hold; negative: the context finds no room, or the libraries
/// find none beside pools that are taken whole.
[[nodiscard]] Bytes tensorflow_room(const std::vector<LibraryLoad>& libraries,
                                    const TensorFlowCard& card, const TensorFlowMemory& memory);

/// "in step 1, while conv1.forward runs: Could not create cudnn handle:
/// CUDNN_STATUS_INTERNAL_ERROR (cuDNN wants 64.0 MiB, and 12.0 MiB are left)"
[[nodiscard]] std::string tensorflow_message(const StepGraph& graph,
                                             const ProcessReplay::Failure& failure);

}  // namespace stowage
