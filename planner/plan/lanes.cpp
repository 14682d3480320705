#include "planner/plan/lanes.hpp"

#include <algorithm>
#include <cassert>

namespace stowage {
namespace {

class Simulation {
 public:
  Simulation(std::span<const double> node_seconds, std::span<const Transfer> transfers,
             std::span<const double> transfer_seconds)
      : node_seconds_(node_seconds), transfers_(transfers), transfer_seconds_(transfer_seconds) {
    const std::size_t n = node_seconds.size();
    timeline_.nodes.resize(n);
    timeline_.stalls.resize(n);
    timeline_.transfers.resize(transfers.size());
    down_done_.assign(n + 1, 0);
    all_done_.assign(n + 1, 0);
  }

  LaneTimeline run() {
    const std::size_t n = node_seconds_.size();
    double compute = 0, downs_done = 0, done = 0;
    for (std::size_t node = 0; node <= n; ++node) {
      // Every copy that node `node` waits for begins at or before its boundary, and so does every
      // copy before it on its lane. Downloads first: uploads that begin here wait for them.
      issue(download_link, node, compute);
      downs_done = std::max(downs_done, down_done_[node]);
      issue_uploads(node, compute, downs_done);
      done = std::max(done, all_done_[node]);
      const double start = std::max(compute, done);
      timeline_.stall_seconds += start - compute;
      if (node == n) {
        timeline_.step_seconds = start;
        break;
      }
      timeline_.stalls[node] = start - compute;
      compute = start + node_seconds_[node];
      timeline_.nodes[node] = {start, compute};
      timeline_.compute_seconds += node_seconds_[node];
    }
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

  void issue_uploads(std::size_t boundary, double compute, double downs_done) {
    issue(upload_link, boundary, std::max(compute, downs_done));
  }

  std::span<const double> node_seconds_;
  std::span<const Transfer> transfers_;
  std::span<const double> transfer_seconds_;
  LaneTimeline timeline_;
  std::vector<double> down_done_;  // by boundary: when the downloads that end there have finished
  std::vector<double> all_done_;   // by boundary: when all copies that end there have finished
  std::size_t next_[2] = {0, 0};   // by link: the first transfer not yet issued
  double lane_[2] = {0, 0};        // by link: when the lane is free
};

}  // namespace

LaneTimeline simulate_lanes(std::span<const double> node_seconds,
                            std::span<const Transfer> transfers,
                            std::span<const double> transfer_seconds) {
  assert(transfers.size() == transfer_seconds.size());
  return Simulation(node_seconds, transfers, transfer_seconds).run();
}

}  // namespace stowage
