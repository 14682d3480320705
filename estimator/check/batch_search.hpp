// batch: the largest batch that fits a card, and the one to use.
//
// Live bytes without workspaces grow with the batch (every size is affine with slope >= 0), so the
// batch at which they alone no longer fit is a hard ceiling, found by bisection. What the runtime
// takes beside them does not grow steadily: cuDNN chooses other engines for other sizes, and
// PyTorch's allocator leaves other gaps. So from the ceiling the search walks down, batch by batch,
// to the first at which the step completes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "estimator/base/diagnostic.hpp"
#include "estimator/check/check.hpp"

namespace stowage {

struct BatchSettings {
  CheckSettings check;
  std::int64_t multiple = 8;                      ///< recommend a multiple of it where there is one
  std::optional<std::int64_t> global_batch = {};  ///< to be reached by accumulation
  /// The step with two micro-batches, whose second forward runs beside the first one's gradients:
  /// how a micro-batch of an accumulated step is sized, however many there are. Wanted with
  /// global_batch.
  std::shared_ptr<const StepGraph> accumulating = {};
};

struct CurvePoint {
  std::int64_t batch = 0;
  Bytes device_bytes;
};

/// Gradient accumulation that reaches a global batch.
struct Accumulation {
  std::int64_t global_batch = 0;
  std::int64_t micro_batch = 0;
  std::int64_t steps = 0;  ///< micro_batch * steps == global_batch
};

struct BatchReport {
  std::int64_t largest = 0;       ///< 0: not even one
  std::int64_t largest_safe = 0;  ///< every batch up to it fits
  /// The largest multiple within largest_safe at which PyTorch comes to ask the driver for nothing
  /// more (if one of the 32 largest is so), else the largest multiple, else largest_safe.
  std::int64_t recommended = 0;
  bool all_tried = true;          ///< false: some near the ceiling and below `largest` were not
                                  ///< tried, since there are too many
  std::int64_t ceiling = 0;       ///< where tensors alone no longer fit, minus one
  bool unlimited = false;         ///< nothing grew up to largest_searched_batch
  std::vector<CurvePoint> curve;  ///< powers of two up to the largest, and the largest
  std::optional<Accumulation> accumulation;
  std::optional<CheckReport> at_recommended;
  std::optional<CheckReport> at_one;  ///< where not even one fits: what takes the room
};

inline constexpr std::int64_t largest_searched_batch = std::int64_t{1} << 24;

/// At most so many batches below the ceiling are tried one by one; then it is bisected. As many are
/// tried for largest_safe.
inline constexpr std::int64_t most_tried_batches = 128;

/// largest_safe takes it that a convolution's least workspace is at most eight times its operands:
/// batches at which every convolution has that much room beside what is live are not asked about.
/// For PyTorch's allocator 40 percent of the memory, at least 1 GiB, must be free besides. Of the
/// others most_tried_batches are tried, evenly spread: by a run that asks about those convolutions
/// alone to which what is assumed is over half of what is left, and where that fails (or with
/// cudnn.benchmark) by one that asks about all.
/// Errors: as size_step's.
[[nodiscard]] Result<BatchReport> find_batch(std::shared_ptr<const StepGraph> graph,
                                             const Card& card, const BatchSettings& settings,
                                             WorkspaceSource& source);

}  // namespace stowage
