// KernelRates: the rates that a GPU's kernels reach, by format and kind.
//
//   seconds = launch + max(operations / (rate of the format * the kind's share),
//                          bytes / (bandwidth * the kind's share))
//
// Operations and bytes are those of the kernel's work (estimator/memory/kernel_work.hpp) and what
// the GPU adds to them:
//   - A matrix product is computed in tiles, 128 or 64 rows by 128 or 64 columns, 32 deep, each
//     extent padded to whole tiles; a side of 64 costs a quarter of the rate. Past a depth of 4,096
//     a tile's depth is shared out too (split-k). It runs at full rate only where every
//     multiprocessor has a tile. Of the four tilings the quickest is taken.
//   - A product with one row or one column (a matrix times a vector) and the attention of one
//   query,
//     which decode a token, also have kernels without tiles on the vector units (cuBLAS' gemv). The
//     quicker one counts.
//   - Operands that have to be reordered for tensor cores are read and written once more, where the
//     format's rate is above fp32's. A product that may run in TF32 runs in fp32, without
//     reordering, where that is quicker.
// docs/planner.md says where the figures are from. Time never falls as an extent grows.
#pragma once

#include <array>

#include "estimator/card/card.hpp"
#include "estimator/memory/kernel_work.hpp"

namespace stowage {

/// Share of the sustained rate that kernels of a kind reach.
struct KindShare {
  double arithmetic = 1, bandwidth = 1;
  bool operator==(const KindShare&) const = default;
};

struct KernelRates {
  double multiprocessors = 0;  ///< 0: not known, and a product of any size fills the GPU
  /// By MathFormat: operations a second that a large matrix product reaches. 0: not known, and no
  /// limit.
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

/// The rates that the card sustains: measured by its calibration (rates and shares of kinds), else
/// a share of its specification.
[[nodiscard]] KernelRates kernel_rates(const Card& card);
/// Bytes a second that copies on the device reach: measured, else a share of the specification.
[[nodiscard]] double sustained_bandwidth(const Card& card);

/// The seconds that an amount takes at a rate. A rate of 0 is not known and limits nothing.
[[nodiscard]] double seconds_for(double amount, double rate);

/// The seconds of a kernel without its launch. `bandwidth`: sustained.
[[nodiscard]] double kernel_seconds(const KernelRates& rates, double bandwidth,
                                    const KernelWork& work);

}  // namespace stowage
