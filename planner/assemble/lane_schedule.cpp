#include "planner/assemble/lane_schedule.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "planner/assemble/node_windows.hpp"
#include "planner/plan/lanes.hpp"

namespace stowage {
namespace {

std::size_t index(std::int32_t index) { return static_cast<std::size_t>(index); }

/// A schedule whose copies take no time, so that the placement alone limits the CPU's nodes.
CopySchedule instant_copies(const ItemMoves& moves) {
  CopySchedule schedule;
  for (const Download& job : moves.downloads) {
    schedule.downloads.push_back({job.earliest, job.earliest});
  }
  for (const Upload& job : moves.uploads) schedule.uploads.push_back({job.need, job.need});
  return schedule;
}

std::vector<StepRange> own_steps(const Placement& placement) {
  std::vector<StepRange> windows(placement.device.size());
  for (std::size_t t = 0; t < windows.size(); ++t) {
    if (placement.device[t] == Device::cpu) {
      windows[t] = StepRange::single(static_cast<std::int32_t>(t));
    }
  }
  return windows;
}

class LaneScheduler {
 public:
  LaneScheduler(const ResidencyProblem& problem, const Placement& placement, const ItemMoves& moves,
                std::span<const double> node_seconds, const CopyRoom& room)
      : problem_(problem),
        placement_(placement),
        moves_(moves),
        node_seconds_(node_seconds),
        room_(room) {}

  CopySchedule run() && {
    const LaneTimeline beside = without_copies(node_seconds_);
    const std::vector<double> seconds = step_seconds(beside);
    attempt(seconds, moves_);
    if (const auto later = with_uploads_after_results(beside)) {
      attempt(seconds, *later);
      const LaneTimeline waiting = without_copies(seconds_with_downloads());
      attempt(step_seconds(waiting), *with_uploads_after_results(waiting));
    }
    attempt({node_seconds_.begin(), node_seconds_.end()}, moves_);
    return std::move(best_);
  }

 private:
  /// Simulates the step without copies, with the widest windows of the CPU's nodes that the
  /// placement allows.
  [[nodiscard]] LaneTimeline without_copies(std::span<const double> node_seconds) const {
    return simulate_lanes(node_seconds, {}, {},
                          node_windows(problem_, placement_, moves_, instant_copies(moves_)));
  }

  /// By step: the seconds from its boundary to the next.
  static std::vector<double> step_seconds(const LaneTimeline& timeline) {
    std::vector<double> seconds;
    for (std::size_t t = 0; t + 1 < timeline.arrivals.size(); ++t) {
      seconds.push_back(timeline.arrivals[t + 1] - timeline.arrivals[t]);
    }
    return seconds;
  }

  /// The seconds of each node, with the downloads that a node of the CPU waits for added to it.
  [[nodiscard]] std::vector<double> seconds_with_downloads() const {
    std::vector<double> seconds(node_seconds_.begin(), node_seconds_.end());
    for (const HostCopy& copy : moves_.copies) {
      if (copy.download < 0 || copy.users.empty()) continue;
      seconds[index(copy.users.front())] += problem_.items[index(copy.item)].d2h_seconds;
    }
    return seconds;
  }

  /// The moves in which uploads of the CPU's results begin when these are there, since the GPU
  /// waits for them then; nullopt: there are no such uploads in the step.
  [[nodiscard]] std::optional<ItemMoves> with_uploads_after_results(
      const LaneTimeline& timeline) const {
    std::optional<ItemMoves> changed;
    for (const HostCopy& copy : moves_.copies) {
      if (copy.at_start || copy.download >= 0 || copy.uploads.empty()) continue;
      if (!changed) changed = moves_;
      const std::int32_t done = first_boundary_at(timeline, timeline.nodes[index(copy.begin)].end);
      for (const std::int32_t upload : copy.uploads) {
        Upload& job = changed->uploads[index(upload)];
        job.earliest = std::max(job.earliest, std::min(done, job.need));
      }
    }
    return changed;
  }

  /// The first boundary that the step reaches at `seconds` or later.
  static std::int32_t first_boundary_at(const LaneTimeline& timeline, double seconds) {
    const auto first = std::ranges::lower_bound(timeline.arrivals, seconds);
    return static_cast<std::int32_t>(first - timeline.arrivals.begin());
  }

  /// Schedules copies by the seconds of each step, with windows and without, and keeps the best.
  void attempt(const std::vector<double>& step_seconds, const ItemMoves& moves) {
    CopySchedule schedule = schedule_copies(problem_, moves, step_seconds, room_);
    const PlacedCopies copies = copies_of(problem_, moves_, schedule);
    for (std::vector<StepRange> windows :
         {node_windows(problem_, placement_, moves_, schedule), own_steps(placement_)}) {
      const LaneTimeline timeline =
          simulate_lanes(node_seconds_, copies.transfers, copies.seconds, windows);
      if (timeline.step_seconds >= best_seconds_) continue;
      best_seconds_ = timeline.step_seconds;
      await_at_first_boundary(timeline, windows);
      best_ = schedule;
      best_.windows = std::move(windows);
    }
  }

  /// Ends each window at the first boundary that comes after the node has finished: nothing is
  /// later for it, and the host memory of the node is free again.
  static void await_at_first_boundary(const LaneTimeline& timeline,
                                      std::vector<StepRange>& windows) {
    for (std::size_t t = 0; t < windows.size(); ++t) {
      if (windows[t].empty()) continue;
      const std::int32_t done = first_boundary_at(timeline, timeline.nodes[t].end);
      const auto own = static_cast<std::int32_t>(t);
      windows[t].end = std::min(windows[t].end, std::max(done, own + 1));
    }
  }

  const ResidencyProblem& problem_;
  const Placement& placement_;
  const ItemMoves& moves_;
  std::span<const double> node_seconds_;
  const CopyRoom& room_;
  CopySchedule best_;
  double best_seconds_ = std::numeric_limits<double>::infinity();
};

}  // namespace

PlacedCopies copies_of(const ResidencyProblem& problem, const ItemMoves& moves,
                       const CopySchedule& schedule) {
  std::vector<std::pair<Transfer, double>> copies;
  const auto add = [&](std::int32_t stay, LinkId link, const CopySpan& span) {
    const std::int32_t item = moves.stays[index(stay)].item;
    const Item& moved = problem.items[index(item)];
    copies.emplace_back(Transfer{problem.storage_of[index(item)], link, span.begin, span.end},
                        link == upload_link ? moved.h2d_seconds : moved.d2h_seconds);
  };
  for (const std::int32_t i : schedule.download_order) {
    add(moves.downloads[index(i)].stay, download_link, schedule.downloads[index(i)]);
  }
  for (const std::int32_t i : schedule.upload_order) {
    add(moves.uploads[index(i)].stay, upload_link, schedule.uploads[index(i)]);
  }
  std::ranges::stable_sort(copies, {}, [](const auto& copy) { return copy.first.begin; });
  PlacedCopies placed;
  for (const auto& [transfer, seconds] : copies) {
    placed.transfers.push_back(transfer);
    placed.seconds.push_back(seconds);
  }
  return placed;
}

CopySchedule schedule_lanes(const ResidencyProblem& problem, const Placement& placement,
                            const ItemMoves& moves, std::span<const double> node_seconds,
                            CopyRoom room) {
  if (std::ranges::find(placement.device, Device::cpu) != placement.device.end()) {
    return LaneScheduler(problem, placement, moves, node_seconds, room).run();
  }
  CopySchedule schedule = schedule_copies(problem, moves, node_seconds, std::move(room));
  schedule.windows.resize(placement.device.size());
  return schedule;
}

}  // namespace stowage
