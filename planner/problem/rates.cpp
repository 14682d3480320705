#include "planner/problem/rates.hpp"

#include <algorithm>

namespace stowage {

namespace {

// PCIe 3.0 x16 in practice, for a card whose link nobody has measured.
constexpr double usual_link = 12e9;

// A rate of 0 is one that is not known: it limits nothing.
double time_at(double amount, double rate) { return rate > 0 ? amount / rate : 0; }

double roofline(double flops, double bytes, double flop_rate, double bandwidth) {
  return std::max(time_at(flops, flop_rate), time_at(bytes, bandwidth));
}

double first_known(double a, double b, double c) { return a > 0 ? a : b > 0 ? b : c; }

}  // namespace

Rates make_rates(const Card& card, const Host& host) {
  Rates rates;
  rates.gpu_flops = card.fp32_flops;
  rates.gpu_bandwidth = card.memory_bandwidth;
  rates.cpu_flops = host.cpu_flops;
  rates.cpu_bandwidth = host.memory_bandwidth;
  if (host.kernel_latency > 0) rates.cpu_launch = host.kernel_latency;
  rates.h2d_bandwidth = first_known(host.h2d_bandwidth, card.h2d_bandwidth, usual_link);
  rates.d2h_bandwidth = first_known(host.d2h_bandwidth, card.d2h_bandwidth, usual_link);
  if (host.link_latency > 0) rates.link_latency = host.link_latency;
  return rates;
}

double gpu_seconds(const Rates& rates, const SizedStep& step, NodeId node) {
  return rates.gpu_launch + roofline(step.flops[node.index()], step.bytes_moved[node.index()],
                                     rates.gpu_flops, rates.gpu_bandwidth);
}

double cpu_seconds(const Rates& rates, const SizedStep& step, NodeId node) {
  return rates.cpu_launch + roofline(step.flops[node.index()], step.bytes_moved[node.index()],
                                     rates.cpu_flops, rates.cpu_bandwidth);
}

double h2d_seconds(const Rates& rates, Bytes bytes) {
  return rates.link_latency + time_at(static_cast<double>(bytes.count()), rates.h2d_bandwidth);
}

double d2h_seconds(const Rates& rates, Bytes bytes) {
  return rates.link_latency + time_at(static_cast<double>(bytes.count()), rates.d2h_bandwidth);
}

}  // namespace stowage
