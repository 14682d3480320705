#include "planner/assemble/node_windows.hpp"

#include <algorithm>
#include <cassert>

namespace stowage {
namespace {

std::size_t slot(std::int32_t index) { return static_cast<std::size_t>(index); }

/// A node's use of an item.
struct Use {
  std::int32_t item = 0;
  bool writes = false;
};

/// A copy of an item: the node that it belongs to, and the boundary that limits windows.
struct CopyBoundary {
  std::int32_t step =
      0;  ///< downloads: the node that wrote the item; uploads: the node that needs it
  std::int32_t boundary = 0;
};

class NodeWindows {
 public:
  NodeWindows(const ResidencyProblem& problem, const Placement& placement, const ItemMoves& moves,
              const CopySchedule& schedule)
      : placement_(placement),
        steps_(static_cast<std::int32_t>(problem.operations.size())),
        uses_(problem.operations.size()),
        downloads_(problem.items.size()),
        uploads_(problem.items.size()) {
    for (std::size_t i = 0; i < problem.items.size(); ++i) {
      for (const Touch& touch : problem.items[i].touches) {
        uses_[slot(touch.step)].push_back({static_cast<std::int32_t>(i), touch.writes});
      }
    }
    const auto item_of = [&](std::int32_t stay) { return slot(moves.stays[slot(stay)].item); };
    for (std::size_t i = 0; i < moves.downloads.size(); ++i) {
      const Download& job = moves.downloads[i];
      downloads_[item_of(job.stay)].push_back({job.earliest - 1, schedule.downloads[i].end});
    }
    for (std::size_t i = 0; i < moves.uploads.size(); ++i) {
      const Upload& job = moves.uploads[i];
      uploads_[item_of(job.stay)].push_back({job.need, schedule.uploads[i].begin});
    }
  }

  std::vector<StepRange> run() && {
    windows_.resize(slot(steps_));
    find_begins();
    find_ends();
    return std::move(windows_);
  }

 private:
  [[nodiscard]] bool on_cpu(std::int32_t step) const {
    return placement_.device[slot(step)] == Device::cpu;
  }

  void find_begins() {
    // By item: from which boundary on it may be read, and from which it may be written.
    std::vector<std::int32_t> readable(downloads_.size(), 0), writable = readable;
    std::vector<std::size_t> next(downloads_.size(), 0), next_upload = next;
    for (std::int32_t step = 0; step < steps_; ++step) {
      std::int32_t begin = on_cpu(step) ? 0 : step + 1;
      for (const Use& use : uses_[slot(step)]) {
        if (!on_cpu(step)) continue;
        const auto item = slot(use.item);
        const std::vector<CopyBoundary>& downloads = downloads_[item];
        for (; next[item] < downloads.size() && downloads[next[item]].step < step; ++next[item]) {
          readable[item] = std::max(readable[item], downloads[next[item]].boundary);
          writable[item] = std::max(writable[item], readable[item]);
        }
        begin = std::max(begin, use.writes ? writable[item] : readable[item]);
      }
      for (const Use& use : uses_[slot(step)]) {
        const auto item = slot(use.item);
        writable[item] = std::max(writable[item], begin);
        if (use.writes) readable[item] = writable[item];
        // An upload for a node of the CPU ends at that node, whenever the node is issued.
        const std::vector<CopyBoundary>& uploads = uploads_[item];
        for (; next_upload[item] < uploads.size() && uploads[next_upload[item]].step <= step;
             ++next_upload[item]) {
          writable[item] = std::max(writable[item], uploads[next_upload[item]].step);
        }
      }
      if (on_cpu(step)) windows_[slot(step)].begin = begin;
      assert(begin <= step + 1);
    }
  }

  void find_ends() {
    // By item: until which boundary it may be read, and until which it may be written.
    std::vector<std::int32_t> until_write(uploads_.size(), steps_), until_touch = until_write;
    std::vector<std::size_t> left(uploads_.size());  // of its uploads
    for (std::size_t i = 0; i < left.size(); ++i) left[i] = uploads_[i].size();
    for (std::int32_t step = steps_; step-- > 0;) {
      std::int32_t end = steps_;
      for (const Use& use : uses_[slot(step)]) {
        const auto item = slot(use.item);
        if (on_cpu(step)) {
          end = std::min(end, use.writes ? until_touch[item] : until_write[item]);
        } else {
          until_touch[item] = std::min(until_touch[item], step);
          if (use.writes) until_write[item] = step;
        }
        const std::vector<CopyBoundary>& uploads = uploads_[item];
        for (; left[item] > 0 && uploads[left[item] - 1].step >= step; --left[item]) {
          until_touch[item] = std::min(until_touch[item], uploads[left[item] - 1].boundary);
        }
      }
      if (!on_cpu(step)) continue;
      assert(end > step);
      windows_[slot(step)].end = end;
    }
  }

  const Placement& placement_;
  std::int32_t steps_;
  std::vector<std::vector<Use>> uses_;                // by node
  std::vector<std::vector<CopyBoundary>> downloads_;  // by item, in order
  std::vector<std::vector<CopyBoundary>> uploads_;    // by item, in order
  std::vector<StepRange> windows_;
};

}  // namespace

std::vector<StepRange> node_windows(const ResidencyProblem& problem, const Placement& placement,
                                    const ItemMoves& moves, const CopySchedule& schedule) {
  return NodeWindows(problem, placement, moves, schedule).run();
}

}  // namespace stowage
