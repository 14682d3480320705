#include "gpu_probe/run/gather_times.hpp"

#include <map>
#include <string>
#include <utility>

#include "planner/plan/two_sides.hpp"

namespace stowage {
namespace {

/// The median over the steps of what `of` says of each.
template <typename Of>
double over_steps(std::span<const StepTimes> steps, const Of& of) {
  std::vector<double> seconds;
  seconds.reserve(steps.size());
  for (const StepTimes& step : steps) seconds.push_back(of(step));
  return median(std::move(seconds));
}

class Calls {
 public:
  void add(const SizedStep& step, NodeId node, double seconds) {
    const KernelNode& kernel = step.graph->node(node);
    std::string call = call_of(step, kernel);
    const auto [place, is_new] = index_.emplace(call, calls_.size());
    if (is_new) {
      calls_.push_back(
          {std::move(call), std::string(kernel_name(kernel)), kernel_work(step, node), 0});
      nodes_.push_back(0);
    }
    MeasuredCall& of = calls_[place->second];
    const double count = ++nodes_[place->second];
    of.seconds += (seconds - of.seconds) / count;
  }
  [[nodiscard]] std::vector<MeasuredCall> taken() && { return std::move(calls_); }

 private:
  std::map<std::string, std::size_t> index_;  // of calls_
  std::vector<MeasuredCall> calls_;           // in the step's order
  std::vector<int> nodes_;                    // with that call
};

}  // namespace

std::optional<MeasuredLink> fitted_link(std::span<const TimedCopy> copies) {
  if (copies.empty()) return std::nullopt;
  double bytes = 0, seconds = 0;
  for (const TimedCopy& copy : copies) {
    bytes += copy.bytes;
    seconds += copy.seconds;
  }
  const auto count = static_cast<double>(copies.size());
  double spread = 0, together = 0;
  for (const TimedCopy& copy : copies) {
    const double from_mean = copy.bytes - bytes / count;
    spread += from_mean * from_mean;
    together += from_mean * (copy.seconds - seconds / count);
  }
  const double a_byte = spread > 0 ? together / spread : 0;
  const double latency = (seconds - a_byte * bytes) / count;
  const bool fits = a_byte > 0 && latency >= 0;
  if (fits) return MeasuredLink{latency, 1 / a_byte};
  // Of one size, or noise: all of it is bandwidth.
  return MeasuredLink{0, seconds > 0 ? bytes / seconds : 0};
}

MeasuredTimes gather_times(const Plan& plan, const std::vector<StepTimes>& by_step) {
  const std::span<const StepTimes> steps = warm_steps(by_step);
  Calls gpu, cpu;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const bool on_gpu = device_of(plan, plan.nodes[i]) == Device::gpu;
    (on_gpu ? gpu : cpu)
        .add(plan.step, NodeId::of(i),
             over_steps(steps, [&](const StepTimes& step) { return step.nodes[i].seconds(); }));
  }
  std::vector<TimedCopy> up, down;
  for (std::size_t i = 0; i < plan.transfers.size(); ++i) {
    const Transfer& transfer = plan.transfers[i];
    (direction_of(plan, transfer) == Direction::h2d ? up : down)
        .push_back(
            {static_cast<double>(plan.bytes(transfer.storage).count()),
             over_steps(steps, [&](const StepTimes& step) { return step.copies[i].seconds(); })});
  }
  return {.backend = {},
          .card = {},
          .host = {},
          .gpu = std::move(gpu).taken(),
          .cpu = std::move(cpu).taken(),
          .h2d = fitted_link(up),
          .d2h = fitted_link(down)};
}

}  // namespace stowage
