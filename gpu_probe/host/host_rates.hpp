// What the host's kernels reach on this machine: the rates that a plan's nodes on the CPU are
// timed with.
#pragma once

#include <string>
#include <string_view>

#include "estimator/base/diagnostic.hpp"

namespace stowage {

struct HostRates {
  double flops = 0;  ///< a second: of a product of square matrices in float32
  double memory_bandwidth =
      0;                      ///< bytes a second that a kernel of single elements reads and writes
  double kernel_latency = 0;  ///< seconds of a kernel with one element
};

/// The best of five each; takes about a second on an idle machine. Errors: the host's kernels are
/// not there.
[[nodiscard]] Result<HostRates> measure_host_rates();

/// As `host:` of a calibration (planner/problem/host.hpp). `name`: the machine's, for a remark.
[[nodiscard]] std::string host_rates_yaml(const HostRates& rates, std::string_view name);

}  // namespace stowage
