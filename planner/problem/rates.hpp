// Rates: the seconds that the planner expects of a kernel and of a transfer.
//
// A kernel takes a launch and the larger of flops / rate and bytes moved / bandwidth (the roofline
// of Williams, Waterman and Patterson 2009). A GPU's rates depend on the kernel's format and kind
// (kernel_rates.hpp). A transfer takes latency + bytes / bandwidth. Times that a run measured
// replace all of these (measured_times.hpp).
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "estimator/base/bytes.hpp"
#include "estimator/base/id.hpp"
#include "estimator/card/card.hpp"
#include "estimator/memory/sized_step.hpp"
#include "planner/problem/host.hpp"
#include "planner/problem/kernel_rates.hpp"
#include "planner/problem/measured_times.hpp"

namespace stowage {

/// The seconds that a run measured, by call.
struct MeasuredSeconds {
  std::string backend;  ///< the backend that ran
  CallSeconds gpu, cpu;
};

struct Rates {
  double gpu_flops = 0, gpu_bandwidth = 0, gpu_launch = 5e-6;
  std::optional<KernelRates> gpu_kernels;  ///< none: gpu_flops is the rate of all kernels
  double cpu_flops = 0, cpu_bandwidth = 0, cpu_launch = 2e-6;
  double h2d_bandwidth = 0, d2h_bandwidth = 0, h2d_latency = 10e-6, d2h_latency = 10e-6;
  std::shared_ptr<const MeasuredSeconds> measured = {};  ///< null: nothing was measured
  bool operator==(const Rates&) const = default;
};

/// `measured`: times for this card; null: none.
[[nodiscard]] Rates make_rates(const Card& card, const Host& host,
                               const MeasuredTimes* measured = nullptr);
[[nodiscard]] double gpu_seconds(const Rates& rates, const SizedStep& step, NodeId node);
/// For a node that the step does not have, but that uses its storages.
[[nodiscard]] double gpu_seconds(const Rates& rates, const SizedStep& step, const KernelNode& node);
[[nodiscard]] double cpu_seconds(const Rates& rates, const SizedStep& step, NodeId node);
[[nodiscard]] double h2d_seconds(const Rates& rates, Bytes bytes);
[[nodiscard]] double d2h_seconds(const Rates& rates, Bytes bytes);

}  // namespace stowage
