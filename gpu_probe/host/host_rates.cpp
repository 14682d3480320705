#include "gpu_probe/host/host_rates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

#include "gpu_probe/host/host_kernels.hpp"

namespace stowage {
namespace {

constexpr std::int64_t product_side = 1536;
constexpr std::int64_t streamed = std::int64_t{1} << 24;  // elements: 64 MiB, larger than any cache
constexpr int repetitions = 5;
constexpr int calls_at_once = 1000;

/// A vector of numbers as an argument of a kernel.
class Numbers {
 public:
  explicit Numbers(std::vector<std::int64_t> shape) : shape_(std::move(shape)) {
    std::int64_t count = 1;
    for (const std::int64_t size : shape_) count *= size;
    values_.assign(static_cast<std::size_t>(count), 0.5F);
  }
  [[nodiscard]] TensorArgument argument() {
    return {reinterpret_cast<std::byte*>(values_.data()), DataType::float32, shape_};
  }

 private:
  std::vector<std::int64_t> shape_;
  std::vector<float> values_;
};

/// Seconds of one call: the best of several, after one to warm up.
Result<double> seconds_of(Kernel kernel, const std::vector<TensorArgument>& reads,
                          const std::vector<TensorArgument>& writes, int calls) {
  using Clock = std::chrono::steady_clock;
  const Attributes none;
  const KernelCall call{.kernel = kernel,
                        .device = Device::cpu,
                        .attributes = &none,
                        .reads = reads,
                        .writes = writes};
  double best = std::numeric_limits<double>::max();
  for (int i = 0; i <= repetitions; ++i) {
    const auto begin = Clock::now();
    for (int n = 0; n < calls; ++n) {
      if (auto done = run_host_kernel(call); !done) return tl::unexpected(std::move(done.error()));
    }
    const std::chrono::duration<double> took = Clock::now() - begin;
    if (i > 0) best = std::min(best, took.count() / calls);
  }
  return std::max(best, 1e-9);
}

}  // namespace

Result<HostRates> measure_host_rates() {
  HostRates rates;
  {
    constexpr double n = product_side;
    Numbers x({product_side, product_side}), w(x), y(x);
    const auto product =
        seconds_of(Kernel::linear_forward, {x.argument(), w.argument()}, {y.argument()}, 1);
    if (!product) return tl::unexpected(product.error());
    rates.flops = 2 * n * n * n / *product;
  }
  Numbers x({streamed}), y({streamed}), one({1}), other({1});
  const auto stream = seconds_of(Kernel::relu_forward, {x.argument()}, {y.argument()}, 1);
  if (!stream) return tl::unexpected(stream.error());
  rates.memory_bandwidth = 2.0 * sizeof(float) * static_cast<double>(streamed) / *stream;
  const auto call =
      seconds_of(Kernel::relu_forward, {one.argument()}, {other.argument()}, calls_at_once);
  if (!call) return tl::unexpected(call.error());
  rates.kernel_latency = *call;
  return rates;
}

std::string host_rates_yaml(const HostRates& rates, std::string_view name) {
  return fmt::format(
      "host:  # {}: the host's kernels, the best of {}\n"
      "  cpu_flops: {:.1f} GFLOP/s\n"
      "  memory_bandwidth: {:.2f} GB/s\n"
      "  kernel_latency: {:.3f} us\n",
      name, repetitions, rates.flops / 1e9, rates.memory_bandwidth / 1e9,
      rates.kernel_latency * 1e6);
}

}  // namespace stowage
