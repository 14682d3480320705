#include "planner/pytorch/hooked_step.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <tuple>
#include <utility>

#include "estimator/rewrite/update_on_host.hpp"
#include "estimator/step/offloaded_bytes.hpp"

namespace stowage {

namespace {

/// What happens before a node runs, those of one node in this order.
struct StepPoint {
  enum class Kind : std::uint8_t { copy_begins, let_go, fetched, needed };
  std::size_t before = 0;  ///< the node
  Kind kind = Kind::copy_begins;
  std::size_t decision = 0;

  [[nodiscard]] auto key() const { return std::tuple(before, kind, decision); }
};

std::vector<StepPoint> points_of(const std::vector<OffloadDecision>& decisions) {
  std::vector<StepPoint> points;
  points.reserve(4 * decisions.size());
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    const SavedStay& stay = decisions[i].stay;
    points.push_back({stay.copied_after.index() + 1, StepPoint::Kind::copy_begins, i});
    points.push_back({stay.released_after.index() + 1, StepPoint::Kind::let_go, i});
    points.push_back({stay.fetched_before.index(), StepPoint::Kind::fetched, i});
    points.push_back({decisions[i].first_unpack.index(), StepPoint::Kind::needed, i});
  }
  std::ranges::sort(points, {}, &StepPoint::key);
  return points;
}

class Streams {
 public:
  Streams(const SizedStep& step, const Rates& rates, const std::vector<OffloadDecision>& decisions,
          const UpdateTimes& updates)
      : step_(step),
        rates_(rates),
        decisions_(decisions),
        updates_(updates),
        there_(decisions.size()),
        back_(decisions.size()),
        ready_(step.storage_bytes.size()) {}

  void reach(const StepPoint& point) {
    const std::size_t i = point.decision;
    switch (point.kind) {
      case StepPoint::Kind::copy_begins:
        there_[i] = download(decisions_[i].stay.storage);
        break;
      case StepPoint::Kind::let_go:
        wait(there_[i]);
        break;
      case StepPoint::Kind::fetched:
        back_[i] = upload(decisions_[i].stay.storage);
        break;
      case StepPoint::Kind::needed:
        wait(back_[i]);
        break;
    }
  }

  void run(NodeId id) {
    const KernelNode& node = step_.graph->node(id);
    if (node.kernel == Kernel::foreign && kernel_name(node) == offload_kernel) {
      return take_gradient(node.reads.front().storage);
    }
    if (node.kernel == Kernel::foreign && kernel_name(node) == fetch_kernel) {
      return node.phase == Phase::update ? bring_parameter(node) : begin_streaming(node);
    }
    for (const TensorView& view : node.reads) wait(ready_[view.storage.index()]);
    for (const StorageId held : node.holds) wait(ready_[held.index()]);
    const double seconds = gpu_seconds(rates_, step_, id);
    lanes_.gpu.push_back({.node = id, .begin = now_, .end = now_ + seconds});
    now_ += seconds;
    busy_ += seconds;
  }

  [[nodiscard]] double now() const { return now_; }
  [[nodiscard]] double busy() const { return busy_; }
  [[nodiscard]] HookedLanes lanes() && { return std::move(lanes_); }

 private:
  void wait(double until) { now_ = std::max(now_, until); }
  double download(StorageId storage) {
    const double begin = std::max(now_, downloads_);
    downloads_ = begin + d2h_seconds(rates_, step_.bytes(storage));
    lanes_.to_host.push_back({.storage = storage, .begin = begin, .end = downloads_});
    return downloads_;
  }
  double upload(StorageId storage) {
    const double begin = std::max(now_, uploads_);
    uploads_ = begin + h2d_seconds(rates_, step_.bytes(storage));
    lanes_.from_host.push_back({.storage = storage, .begin = begin, .end = uploads_});
    return uploads_;
  }

  /// A piece of parameters, for the block that runs next.
  void begin_streaming(const KernelNode& node) {
    const StorageId piece = node.writes.front().storage;
    ready_[piece.index()] = upload(piece);
  }

  void bring_parameter(const KernelNode& node) {
    if (updates_.early) {
      uploads_ = std::max(uploads_, updated_.front());
      updated_.pop_front();
    } else if (late_seconds_ > 0) {
      const double begin = std::max({uploads_, now_, downloads_});
      uploads_ = begin + late_seconds_;
      lanes_.cpu.push_back({.begin = begin, .end = uploads_});
      late_seconds_ = 0;
    }
    wait(upload(node.writes.front().storage));
  }

  void take_gradient(StorageId gradient) {
    if (in_flight_.size() > gradients_in_flight) {
      wait(in_flight_.front());
      in_flight_.pop_front();
    }
    in_flight_.push_back(download(gradient));
    const double seconds =
        updates_.cpu_seconds_a_byte * static_cast<double>(step_.bytes(gradient).count());
    late_seconds_ += seconds;
    const double begin = std::max(updated_at_, downloads_);
    updated_at_ = begin + seconds;
    if (!updates_.early) return;
    updated_.push_back(updated_at_);
    lanes_.cpu.push_back({.storage = gradient, .begin = begin, .end = updated_at_});
  }

  const SizedStep& step_;
  const Rates& rates_;
  const std::vector<OffloadDecision>& decisions_;
  const UpdateTimes& updates_;
  std::vector<double> there_, back_;  // by decision: when its copy is done
  std::vector<double> ready_;         // by storage: when the copy of a streamed piece is done
  std::deque<double> in_flight_;      // when the gradients' copies are done
  std::deque<double> updated_;        // early: when the CPU has updated each parameter
  double updated_at_ = 0, late_seconds_ = 0;  // late: of updates to come
  double now_ = 0, busy_ = 0, downloads_ = 0, uploads_ = 0;
  HookedLanes lanes_;
};

/// A tensor has memory of the host's from its copy's begin to the step's end, where it is given
/// back to the pool.
Bytes pinned_bytes(const SizedStep& step, const std::vector<OffloadDecision>& decisions) {
  Bytes pinned;
  for (const OffloadDecision& decision : decisions) pinned += step.bytes(decision.stay.storage);
  for (const HostBuffer& buffer : step.graph->host_buffers) {
    if (buffer.pinned) pinned += Bytes(buffer.bytes);
  }
  return pinned;
}

}  // namespace

HookedStep hooked_step(const SizedStep& step, const Rates& rates,
                       const std::vector<OffloadDecision>& decisions, std::size_t calls,
                       const UpdateTimes& updates) {
  const std::vector<StepPoint> points = points_of(decisions);
  Streams streams(step, rates, decisions, updates);
  auto point = points.begin();
  for (std::size_t n = 0; n < step.graph->nodes.size(); ++n) {
    for (; point != points.end() && point->before == n; ++point) streams.reach(*point);
    streams.run(NodeId::of(n));
  }
  const double hooks = hook_seconds * static_cast<double>(calls) +
                       update_hook_seconds * static_cast<double>(updates.hooks);
  return {.seconds = std::max(streams.now(), hooks),
          .busy_seconds = streams.busy(),
          .pinned = pinned_bytes(step, decisions),
          .lanes = std::move(streams).lanes()};
}

}  // namespace stowage
