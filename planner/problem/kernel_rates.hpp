// KernelRates: what a GPU's kernels reach, by format and kind.
//
//   seconds = launch + max(operations / (rate of the format * the kind's share),
//                          bytes / (bandwidth * the kind's share))
//
// where operations and bytes are those of the kernel's work (estimator/memory/kernel_work.hpp) and
// what the GPU adds to them:
//   - a matrix product is computed in tiles, 128 or 64 rows by 128 or 64 columns, 32 deep, each
//     extent padded to whole tiles; a side of 64 costs a quarter of the rate. Past a depth of 4,096
//     a tile's depth is shared out too (split-k). It runs at full rate only where every
//     multiprocessor has a tile. Of the four tilings the quickest is taken;
//   - operands that have to be reordered for tensor cores are read and written once more, where the
//     format's rate is above fp32's. What may run in TF32 runs in fp32, without, where that is
//     quicker.
// docs/planner.md says where the figures are from. Time never falls as an extent grows.
#pragma once

#include <array>

#include "estimator/card/card.hpp"
#include "estimator/memory/kernel_work.hpp"

namespace stowage {

/// Of what the GPU sustains.
struct KindShare {
  double arithmetic = 1, bandwidth = 1;
  bool operator==(const KindShare&) const = default;
};

struct KernelRates {
  double multiprocessors = 0;  ///< 0: not known, a product of any size fills the GPU
  /// By MathFormat, operations a second that a large matrix product reaches; 0: not known, limits
  /// nothing.
  std::array<double, all_math_formats.size()> formats{};
  std::array<KindShare, all_kernel_kinds.size()> kinds{};  ///< by KernelKind

  [[nodiscard]] double rate(MathFormat format) const {
    return formats[static_cast<std::size_t>(format)];
  }
  [[nodiscard]] const KindShare& share(KernelKind kind) const {
    return kinds[static_cast<std::size_t>(kind)];
  }
  bool operator==(const KernelRates&) const = default;
};

/// What the card sustains: what a calibration measured where there is one (rates, and shares of
/// kinds), else a share of its specification.
[[nodiscard]] KernelRates kernel_rates(const Card& card);
/// Bytes a second that copies on the device reach, likewise.
[[nodiscard]] double sustained_bandwidth(const Card& card);

/// A rate of 0 is one that is not known: it limits nothing.
[[nodiscard]] double seconds_for(double amount, double rate);

/// Without the launch. `bandwidth`: sustained.
[[nodiscard]] double kernel_seconds(const KernelRates& rates, double bandwidth,
                                    const KernelWork& work);

}  // namespace stowage
