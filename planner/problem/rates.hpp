// Rates: what the planner takes a kernel and a transfer to cost in seconds.
//
// A kernel: the larger of flops / rate and bytes moved / bandwidth (the roofline of Williams,
// Waterman and Patterson 2009), plus a launch. A GPU's rates are those of the kernel's format and
// kind (kernel_rates.hpp). A transfer: latency + bytes / bandwidth.
#pragma once

#include <optional>

#include "estimator/base/bytes.hpp"
#include "estimator/base/id.hpp"
#include "estimator/card/card.hpp"
#include "estimator/memory/sized_step.hpp"
#include "planner/problem/host.hpp"
#include "planner/problem/kernel_rates.hpp"

namespace stowage {

struct Rates {
  double gpu_flops = 0, gpu_bandwidth = 0, gpu_launch = 5e-6;
  std::optional<KernelRates> gpu_kernels;  ///< none: gpu_flops for all kernels
  double cpu_flops = 0, cpu_bandwidth = 0, cpu_launch = 2e-6;
  double h2d_bandwidth = 0, d2h_bandwidth = 0, link_latency = 10e-6;
  bool operator==(const Rates&) const = default;
};

[[nodiscard]] Rates make_rates(const Card& card, const Host& host);
[[nodiscard]] double gpu_seconds(const Rates& rates, const SizedStep& step, NodeId node);
/// Of a node that the step does not have, on its storages.
[[nodiscard]] double gpu_seconds(const Rates& rates, const SizedStep& step, const KernelNode& node);
[[nodiscard]] double cpu_seconds(const Rates& rates, const SizedStep& step, NodeId node);
[[nodiscard]] double h2d_seconds(const Rates& rates, Bytes bytes);
[[nodiscard]] double d2h_seconds(const Rates& rates, Bytes bytes);

}  // namespace stowage
