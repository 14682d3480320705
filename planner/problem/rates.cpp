#include "planner/problem/rates.hpp"

#include <algorithm>

namespace stowage {

namespace {

// The rate of PCIe 3.0 x16 in practice, for a card whose link was not measured.
constexpr double default_link_rate = 12e9;

double roofline(double flops, double bytes, double flop_rate, double bandwidth) {
  return std::max(seconds_for(flops, flop_rate), seconds_for(bytes, bandwidth));
}

double without_kernel_rates(const Rates& rates, double flops, double bytes) {
  return rates.gpu_launch + roofline(flops, bytes, rates.gpu_flops, rates.gpu_bandwidth);
}

double with_kernel_rates(const Rates& rates, const KernelWork& work) {
  return rates.gpu_launch + kernel_seconds(*rates.gpu_kernels, rates.gpu_bandwidth, work);
}

double roofline_on_cpu(const Rates& rates, double flops, double bytes) {
  return rates.cpu_launch + roofline(flops, bytes, rates.cpu_flops, rates.cpu_bandwidth);
}

void apply_measured_times(const MeasuredTimes& times, Rates& rates) {
  if (times.h2d) {
    rates.h2d_latency = times.h2d->latency;
    rates.h2d_bandwidth = times.h2d->bandwidth;
  }
  if (times.d2h) {
    rates.d2h_latency = times.d2h->latency;
    rates.d2h_bandwidth = times.d2h->bandwidth;
  }
  const std::vector<MeasuredCall> none;
  const auto elsewhere = [&](const std::vector<MeasuredCall>& calls) -> const auto& {
    return times.is_emulated() ? calls : none;
  };
  rates.measured = std::make_shared<const MeasuredSeconds>(MeasuredSeconds{
      times.backend,
      CallSeconds(times.gpu, elsewhere(times.cpu),
                  [&](const KernelWork& work) { return with_kernel_rates(rates, work); }),
      CallSeconds(times.cpu, elsewhere(times.gpu), [&](const KernelWork& work) {
        return roofline_on_cpu(rates, work.flops, work.bytes);
      })});
}

double first_known(double a, double b, double c) { return a > 0 ? a : b > 0 ? b : c; }

}  // namespace

Rates make_rates(const Card& card, const Host& host, const MeasuredTimes* measured) {
  Rates rates;
  rates.gpu_kernels = kernel_rates(card);
  rates.gpu_flops = rates.gpu_kernels->rate(MathFormat::fp32);
  rates.gpu_bandwidth = sustained_bandwidth(card);
  if (card.kernel_latency > 0) rates.gpu_launch = card.kernel_latency;
  rates.cpu_flops = host.cpu_flops;
  rates.cpu_bandwidth = host.memory_bandwidth;
  if (host.kernel_latency > 0) rates.cpu_launch = host.kernel_latency;
  rates.h2d_bandwidth = first_known(host.h2d_bandwidth, card.h2d_bandwidth, default_link_rate);
  rates.d2h_bandwidth = first_known(host.d2h_bandwidth, card.d2h_bandwidth, default_link_rate);
  if (host.link_latency > 0) rates.h2d_latency = rates.d2h_latency = host.link_latency;
  if (measured != nullptr) apply_measured_times(*measured, rates);
  return rates;
}

double gpu_seconds(const Rates& rates, const SizedStep& step, NodeId node) {
  const double seconds = rates.gpu_kernels ? with_kernel_rates(rates, kernel_work(step, node))
                                           : without_kernel_rates(rates, step.flops[node.index()],
                                                                  step.bytes_moved[node.index()]);
  if (!rates.measured) return seconds;
  return rates.measured->gpu.of(step, step.graph->node(node), seconds);
}

double gpu_seconds(const Rates& rates, const SizedStep& step, const KernelNode& node) {
  const double seconds = rates.gpu_kernels ? with_kernel_rates(rates, kernel_work(step, node))
                                           : without_kernel_rates(rates, flops_of(node, step.batch),
                                                                  bytes_moved_by(node, step.batch));
  return rates.measured ? rates.measured->gpu.of(step, node, seconds) : seconds;
}

double cpu_seconds(const Rates& rates, const SizedStep& step, NodeId node) {
  const double seconds =
      roofline_on_cpu(rates, step.flops[node.index()], step.bytes_moved[node.index()]);
  if (!rates.measured) return seconds;
  return rates.measured->cpu.of(step, step.graph->node(node), seconds);
}

double h2d_seconds(const Rates& rates, Bytes bytes) {
  return rates.h2d_latency + seconds_for(static_cast<double>(bytes.count()), rates.h2d_bandwidth);
}

double d2h_seconds(const Rates& rates, Bytes bytes) {
  return rates.d2h_latency + seconds_for(static_cast<double>(bytes.count()), rates.d2h_bandwidth);
}

}  // namespace stowage
