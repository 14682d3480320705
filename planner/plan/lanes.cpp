#include "planner/plan/lanes.hpp"

#include <algorithm>
#include <cassert>

namespace stowage {
namespace {

class Simulation {
 public:
  Simulation(std::span<const double> node_seconds, std::span<const Transfer> transfers,
             std::span<const double> transfer_seconds, std::span<const StepRange> cpu_windows)
      : node_seconds_(node_seconds),
        transfers_(transfers),
        transfer_seconds_(transfer_seconds),
        cpu_windows_(cpu_windows) {
    const std::size_t n = node_seconds.size();
    timeline_.nodes.resize(n);
    timeline_.stalls.resize(n);
    timeline_.transfers.resize(transfers.size());
    down_done_.assign(n + 1, 0);
    all_done_.assign(n + 1, 0);
    cpu_done_.assign(n + 1, 0);
    sort_by_issue();
  }

  LaneTimeline run() {
    const std::size_t n = node_seconds_.size();
    double gpu = 0, arrived = 0, downs_done = 0, done = 0;
    for (std::size_t t = 0; t <= n; ++t) {
      arrived = std::max({arrived, gpu, cpu_done_[t]});
      timeline_.arrivals.push_back(arrived);
      // Every copy that step t waits for begins at or before its boundary, and so does every copy
      // before it on its lane. Downloads first: uploads that begin here wait for them.
      issue(download_link, t, arrived);
      downs_done = std::max(downs_done, down_done_[t]);
      issue(upload_link, t, std::max(arrived, downs_done));
      done = std::max(done, all_done_[t]);
      const double start = std::max(arrived, done);
      timeline_.stall_seconds += start - arrived;
      if (t == n) {
        timeline_.step_seconds = start;
        break;
      }
      timeline_.stalls[t] = start - arrived;
      issue_cpu_nodes(t, start);
      arrived = start;
      if (is_on_cpu(t)) continue;
      gpu = start + node_seconds_[t];
      timeline_.nodes[t] = {start, gpu};
    }
    for (const double seconds : node_seconds_) timeline_.compute_seconds += seconds;
    for (const double seconds : transfer_seconds_) timeline_.transfer_seconds += seconds;
    if (timeline_.transfer_seconds > 0) {
      timeline_.overlap = std::max(0.0, 1 - timeline_.stall_seconds / timeline_.transfer_seconds);
    }
    return std::move(timeline_);
  }

 private:
  void issue(LinkId link, std::size_t boundary, double ready) {
    std::size_t& next = next_[link.index()];
    double& lane = lane_[link.index()];
    for (; next < transfers_.size(); ++next) {
      const Transfer& transfer = transfers_[next];
      if (transfer.link != link) continue;
      if (static_cast<std::size_t>(transfer.begin) > boundary) break;
      assert(static_cast<std::size_t>(transfer.begin) == boundary);
      const double start = std::max(lane, ready);
      lane = start + transfer_seconds_[next];
      timeline_.transfers[next] = {start, lane};
      const auto end = static_cast<std::size_t>(transfer.end);
      assert(end >= boundary && end <= node_seconds_.size());
      all_done_[end] = std::max(all_done_[end], lane);
      if (link == download_link) down_done_[end] = std::max(down_done_[end], lane);
    }
  }

  [[nodiscard]] bool is_on_cpu(std::size_t node) const {
    return !cpu_windows_.empty() && !cpu_windows_[node].empty();
  }

  void sort_by_issue() {
    for (std::size_t i = 0; i < cpu_windows_.size(); ++i) {
      if (is_on_cpu(i)) cpu_queue_.push_back(i);
    }
    std::ranges::stable_sort(cpu_queue_, {}, [&](std::size_t i) { return cpu_windows_[i].begin; });
  }

  void issue_cpu_nodes(std::size_t boundary, double ready) {
    for (; next_on_cpu_ < cpu_queue_.size(); ++next_on_cpu_) {
      const std::size_t node = cpu_queue_[next_on_cpu_];
      const StepRange& window = cpu_windows_[node];
      if (static_cast<std::size_t>(window.begin) > boundary) break;
      assert(window.contains(static_cast<std::int32_t>(node)));
      const double start = std::max(cpu_lane_, ready);
      cpu_lane_ = start + node_seconds_[node];
      timeline_.nodes[node] = {start, cpu_lane_};
      double& done = cpu_done_[static_cast<std::size_t>(window.end)];
      done = std::max(done, cpu_lane_);
    }
  }

  std::span<const double> node_seconds_;
  std::span<const Transfer> transfers_;
  std::span<const double> transfer_seconds_;
  std::span<const StepRange> cpu_windows_;
  LaneTimeline timeline_;
  std::vector<double> down_done_;  // by boundary: when the downloads that end there have finished
  std::vector<double> all_done_;   // by boundary: when all copies that end there have finished
  std::vector<double> cpu_done_;   // by boundary: when the CPU's nodes that end there have finished
  std::vector<std::size_t> cpu_queue_;  // its nodes in the order of issue
  std::size_t next_on_cpu_ = 0;         // of cpu_queue_: the first not yet issued
  double cpu_lane_ = 0;                 // when it is free
  std::size_t next_[2] = {0, 0};        // by link: the first transfer not yet issued
  double lane_[2] = {0, 0};             // by link: when the lane is free
};

}  // namespace

LaneTimeline simulate_lanes(std::span<const double> node_seconds,
                            std::span<const Transfer> transfers,
                            std::span<const double> transfer_seconds,
                            std::span<const StepRange> cpu_windows) {
  assert(transfers.size() == transfer_seconds.size());
  assert(cpu_windows.empty() || cpu_windows.size() == node_seconds.size());
  return Simulation(node_seconds, transfers, transfer_seconds, cpu_windows).run();
}

}  // namespace stowage
