// What a check of TensorFlow's runtime finds out by running it: does the process complete, what do
// its pools come to hold, and where it fails, why and what would do.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "estimator/memory/card.hpp"
#include "estimator/memory/runtime.hpp"
#include "estimator/memory/sized_step.hpp"

namespace stowage {

/// A pool of TensorFlow's and the replica in it.
struct LogicalDevice {
  std::string name;  ///< "GPU:0"
  Bytes limit;
  Bytes pool;  ///< held of the card
  Bytes used;  ///< the most in chunks handed out
};

struct TensorFlowOutcome {
  /// The process that completed; where none did, one in pools of `least_pool` with room for all.
  ProcessReplay replica;
  std::vector<LogicalDevice> devices;
  Bytes pools;  ///< of all devices
  std::optional<ProcessReplay::Failure> failure;
  std::optional<Bytes> least_pool;    ///< sought where a pool is too small
  std::vector<std::string> would_do;  ///< options with which it completes: "--memory-growth"
};

[[nodiscard]] TensorFlowOutcome run_tensorflow(const SizedStep& step,
                                               const std::vector<Touches>& touches,
                                               const std::vector<RuntimeBuffer>& buffers,
                                               const Card& card, const CheckSettings& settings);

/// Whether it completes, and leaves what is to stay free.
[[nodiscard]] bool tensorflow_completes(const SizedStep& step, const std::vector<Touches>& touches,
                                        const std::vector<RuntimeBuffer>& buffers, const Card& card,
                                        const CheckSettings& settings);

/// "in step 1, while conv1.forward runs: Could not create cudnn handle:
/// CUDNN_STATUS_INTERNAL_ERROR (64.0 MiB wanted beside the pools, 12.0 MiB left)"
[[nodiscard]] std::string tensorflow_message(const StepGraph& graph,
                                             const ProcessReplay::Failure& failure);

}  // namespace stowage
