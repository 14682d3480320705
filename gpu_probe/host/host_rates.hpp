// HostRates: the rates that the host's kernels reach on this machine. Plans use them to time the
// nodes on the CPU.
#pragma once

#include <string>
#include <string_view>

#include "estimator/base/diagnostic.hpp"

namespace stowage {

struct HostRates {
  double flops = 0;  ///< a second, in a product of square float32 matrices
  /// Bytes a second that an elementwise kernel reads and writes.
  double memory_bandwidth = 0;
  double kernel_latency = 0;  ///< seconds of a kernel on one element
};

/// Each rate is the best of five runs; all together take about a second on an idle machine. Errors:
/// the host's kernels do not load.
[[nodiscard]] Result<HostRates> measure_host_rates();

/// The rates as `host:` in a calibration (planner/problem/host.hpp). `name`: the machine's name,
/// for a comment.
[[nodiscard]] std::string host_rates_yaml(const HostRates& rates, std::string_view name);

}  // namespace stowage
