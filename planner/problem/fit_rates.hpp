// From kernels that were timed one by one to the rates that the planner times others with.
//
// The model is kernel_rates.hpp's:
//
//   seconds = launch + max(operations / (rate * arithmetic share), bytes / (bandwidth * share))
//
// The launch is the least that any kernel took. A kind's share of arithmetic is the median, over
// its kernels that the model finds limited by arithmetic, of what the model without shares says
// over what was measured beyond the launch; its share of the bandwidth likewise over the others.
// Kernels of less than three launches say little about a rate and are left out. A share without
// kernels stays as it was.
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

/// How well a kind's kernels are told by the fit.
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
