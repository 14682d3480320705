// Fits the rates of kernel_rates.hpp to kernels that were timed one by one.
//
// The model is kernel_rates.hpp's:
//
//   seconds = launch + max(operations / (rate * arithmetic share), bytes / (bandwidth * share))
//
// The launch is the least time that any kernel took. A kind's share of arithmetic is a median over
// those of its kernels that the model finds limited by arithmetic: of the seconds that the model
// without shares predicts, divided by the measured seconds without the launch. The share of the
// bandwidth is the same median over the other kernels. Kernels of less than three launches say
// little about a rate and are left out. A share without kernels keeps its value.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "planner/problem/kernel_rates.hpp"

namespace stowage {

struct KernelSample {
  KernelWork work;
  double seconds = 0;  ///< measured, above 0
};

/// How well the fitted rates predict the kernels of one kind.
struct KindFit {
  KernelKind kind = KernelKind::pointwise;
  std::int64_t by_arithmetic = 0, by_bandwidth = 0;  ///< kernels that each share is the median of
  double median_error = 0;  ///< of |predicted - measured| / measured, over all of the kind's
};

struct FittedRates {
  KernelRates rates;
  double launch = 0;          ///< seconds
  std::vector<KindFit> fits;  ///< of the kinds that have kernels, in their order
};

/// `rates`, `bandwidth`: of the same card, as measured or by rule; the shares are fitted to them.
/// Without samples the rates stay and the launch is 0. O(n log n).
[[nodiscard]] FittedRates fit_rates(const KernelRates& rates, double bandwidth,
                                    std::span<const KernelSample> samples);

}  // namespace stowage
