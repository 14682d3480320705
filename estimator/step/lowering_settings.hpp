// LoweringSettings: all that decides which step a model is lowered to, besides the model itself.
//
// A value: two equal settings lower one model to equal step graphs (lower.hpp).
#pragma once

#include <compare>
#include <string>
#include <string_view>
#include <vector>

#include "estimator/base/kernel_set.hpp"
#include "estimator/model/step_settings.hpp"
#include "estimator/optimizer/optimizer_settings.hpp"
#include "estimator/step/data_parallel.hpp"

namespace stowage {

enum class Mode { train, inference };
[[nodiscard]] std::string_view to_string(Mode mode);

/// How PyTorch chooses a convolution's engine: the settings of torch.backends.cudnn.
struct ConvolutionSettings {
  bool tf32 = true;  ///< fp32 convolutions may run on tensor cores, as they may by default
  bool deterministic = false;  ///< only engines that give the same bits every time
  bool benchmark = false;      ///< the engines are timed in the first step, and the fastest taken
  auto operator<=>(const ConvolutionSettings&) const = default;
};

/// What backward makes again out of the forward pass (rewrite/recompute.hpp).
struct RecomputedValue {
  std::string value;        ///< a storage's name, with micro-batches as it is with them
  std::string before = {};  ///< a backward node's name: what has been made again by then is let go,
                            ///< and made once more when it is wanted; empty: forward's is let go
  auto operator<=>(const RecomputedValue&) const = default;
};

/// Nodes in a row of the order in which a step was lowered, by the names of the first and the last
/// (rewrite/node_order.hpp).
struct NodeRun {
  std::string first, last;
  auto operator<=>(const NodeRun&) const = default;
};

struct LoweringSettings {
  KernelSet kernels = KernelSet::stowage;
  Mode mode = Mode::train;
  OptimizerSettings optimizer;
  int micro_batches = 1;  ///< forward and backward repeated, gradients accumulated, one update
  /// Each update right after its gradient (rewrite/early_updates.hpp).
  bool early_updates = false;
  /// Kernels write over an argument that nothing needs any more (rewrite/results_in_place.hpp).
  bool in_place = false;
  StepSettings step = {};
  /// Of the card, as major.minor: PyTorch chooses its attention kernels by it. The default is a
  /// generic card's.
  double compute_capability = 8.6;
  /// PyTorch's memory-efficient attention takes key heads that several query heads share: since
  /// 2.14 (asked of 2.13.0 and 2.14.1; seen under 2.11.0 on an H100).
  bool efficient_takes_groups = true;
  ConvolutionSettings convolutions = {};
  DataParallel parallel = {};  ///< sizes what one of the GPUs keeps; the kernels are the same
  std::vector<RecomputedValue> recomputed = {};  ///< ascending, each once
  std::vector<NodeRun> order = {};  ///< in which all of these run; empty: as they are lowered
  bool operator==(const LoweringSettings&) const = default;
};

}  // namespace stowage
