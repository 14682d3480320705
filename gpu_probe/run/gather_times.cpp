#include "gpu_probe/run/gather_times.hpp"

#include <map>
#include <string>
#include <utility>

#include "estimator/base/median.hpp"
#include "planner/plan/two_sides.hpp"

namespace stowage {
namespace {

/// The median over the steps of the seconds that `of` gives for each.
template <typename Of>
double over_steps(std::span<const StepTimes> steps, const Of& of) {
  std::vector<double> seconds;
  seconds.reserve(steps.size());
  for (const StepTimes& step : steps) seconds.push_back(of(step));
  return median(std::move(seconds), MiddleValue::lower);
}

struct NodeTime {
  double seconds = 0;
  bool alone = true;
};

class Calls {
 public:
  void add(const SizedStep& step, NodeId node, const NodeTime& time) {
    const KernelNode& kernel = step.graph->node(node);
    std::string call = call_of(step, kernel);
    const auto [place, is_new] = index_.emplace(call, calls_.size());
    if (is_new) {
      calls_.push_back(
          {std::move(call), std::string(kernel_name(kernel)), kernel_work(step, node), 0});
      counts_.push_back({0, time.alone});
    }
    Count& count = counts_[place->second];
    if (count.alone && !time.alone) return;
    if (count.alone != time.alone)
      count = {0, true};  // drops times of kernels that ran beside another
    MeasuredCall& of = calls_[place->second];
    of.seconds = (of.seconds * count.nodes + time.seconds) / (count.nodes + 1);
    ++count.nodes;
  }
  [[nodiscard]] std::vector<MeasuredCall> taken() && { return std::move(calls_); }

 private:
  struct Count {
    int nodes = 0;      // in the mean
    bool alone = true;  // whether these nodes ran alone
  };
  std::map<std::string, std::size_t> index_;  // a call's index in calls_
  std::vector<MeasuredCall> calls_;           // in the step's order
  std::vector<Count> counts_;                 // by index in calls_
};

/// Each node's median over the steps, by NodeId. If the node ran alone in some steps, only those
/// count.
std::vector<NodeTime> node_times(const Plan& plan, std::span<const StepTimes> steps,
                                 bool emulated) {
  std::vector<std::vector<bool>> alone;
  for (const StepTimes& step : steps) {
    alone.push_back(emulated ? ran_alone(step, plan) : std::vector<bool>(plan.nodes.size(), true));
  }
  std::vector<NodeTime> times;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    std::vector<double> undisturbed, all;
    for (std::size_t n = 0; n < steps.size(); ++n) {
      all.push_back(steps[n].nodes[i].seconds());
      if (alone[n][i]) undisturbed.push_back(all.back());
    }
    const bool ever_alone = !undisturbed.empty();
    times.push_back({median(ever_alone ? undisturbed : all, MiddleValue::lower), ever_alone});
  }
  return times;
}

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
  // All copies have one size, or the times are noise: no fixed part, only bandwidth.
  return MeasuredLink{0, seconds > 0 ? bytes / seconds : 0};
}

MeasuredTimes gather_times(const Plan& plan, const std::vector<StepTimes>& by_step, bool emulated) {
  const std::span<const StepTimes> steps = warm_steps(by_step);
  const std::vector<NodeTime> times = node_times(plan, steps, emulated);
  Calls gpu, cpu;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const bool on_gpu = device_of(plan, plan.nodes[i]) == Device::gpu;
    (on_gpu ? gpu : cpu).add(plan.step, NodeId::of(i), times[i]);
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
