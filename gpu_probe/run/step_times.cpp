#include "gpu_probe/run/step_times.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>

#include "planner/validate/node_seconds.hpp"

namespace stowage {

double step_seconds(const StepTimes& times) {
  TimeSpan whole{.begin = std::numeric_limits<double>::infinity(), .end = 0};
  for (const auto* spans : {&times.nodes, &times.copies}) {
    for (const TimeSpan& span : *spans) {
      whole.begin = std::min(whole.begin, span.begin);
      whole.end = std::max(whole.end, span.end);
    }
  }
  return std::max(0.0, whole.seconds());
}

double kernel_seconds(const StepTimes& times) {
  double seconds = 0;
  for (const TimeSpan& span : times.nodes) seconds += span.seconds();
  return seconds;
}

double copy_seconds(const StepTimes& times, const Plan& plan, Direction lane) {
  double seconds = 0;
  for (std::size_t i = 0; i < times.copies.size(); ++i) {
    if (direction_of(plan, plan.transfers[i]) == lane) seconds += times.copies[i].seconds();
  }
  return seconds;
}

LaneSeconds lane_seconds(const StepTimes& times, const Plan& plan) {
  LaneSeconds lanes{.h2d = copy_seconds(times, plan, Direction::h2d),
                    .d2h = copy_seconds(times, plan, Direction::d2h),
                    .step = step_seconds(times)};
  for (std::size_t i = 0; i < times.nodes.size(); ++i) {
    const bool on_gpu = device_of(plan, plan.nodes[i]) == Device::gpu;
    (on_gpu ? lanes.gpu : lanes.cpu) += times.nodes[i].seconds();
  }
  return lanes;
}

LaneSeconds planned_lane_seconds(const Plan& plan) {
  LaneSeconds lanes{.step = plan.totals.step_seconds};
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const bool on_gpu = device_of(plan, plan.nodes[i]) == Device::gpu;
    (on_gpu ? lanes.gpu : lanes.cpu) += node_seconds(plan, i);
  }
  for (const Transfer& transfer : plan.transfers) {
    const Link& link = plan.machine.link(transfer.link);
    const auto bytes = static_cast<double>(plan.bytes(transfer.storage).count());
    const bool up = direction_of(plan, transfer) == Direction::h2d;
    (up ? lanes.h2d : lanes.d2h) += link.latency + seconds_at(bytes, link.bandwidth);
  }
  return lanes;
}

std::vector<bool> ran_alone(const StepTimes& times, const Plan& plan) {
  std::array<std::vector<TimeSpan>, 2> lanes;  // by Device, in the order of time
  for (std::size_t i = 0; i < times.nodes.size(); ++i) {
    const Device device = device_of(plan, plan.nodes[i]);
    lanes[static_cast<std::size_t>(device)].push_back(times.nodes[i]);
  }
  for (auto& lane : lanes) std::ranges::sort(lane, {}, &TimeSpan::begin);
  std::vector<bool> alone;
  for (std::size_t i = 0; i < times.nodes.size(); ++i) {
    const bool on_gpu = device_of(plan, plan.nodes[i]) == Device::gpu;
    const auto& other = lanes[static_cast<std::size_t>(on_gpu ? Device::cpu : Device::gpu)];
    // A lane runs one kernel after the other: the first one that ends later decides.
    const auto next = std::ranges::upper_bound(other, times.nodes[i].begin, {}, &TimeSpan::end);
    alone.push_back(next == other.end() || next->begin >= times.nodes[i].end);
  }
  return alone;
}

std::span<const StepTimes> warm_steps(const std::vector<StepTimes>& by_step) {
  return std::span(by_step).subspan(by_step.size() > 1 ? 1 : 0);
}

}  // namespace stowage
