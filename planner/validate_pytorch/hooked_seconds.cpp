#include "planner/validate_pytorch/hooked_seconds.hpp"

#include <algorithm>
#include <string_view>

#include "estimator/rewrite/update_on_host.hpp"
#include "estimator/step/offloaded_bytes.hpp"

namespace stowage {

namespace {

bool is_copy(const KernelNode& node, std::string_view kernel) {
  return node.kernel == Kernel::foreign && kernel_name(node) == kernel;
}

class StepClock {
 public:
  StepClock(const SizedStep& step, const std::vector<Bytes>& stays, const StepRates& rates,
            const HostUpdateRate& update)
      : step_(step),
        stays_(stays),
        rates_(rates),
        update_(update),
        arrival_(step.storage_bytes.size(), 0),
        copied_(stays.size(), 0) {}

  void pass(const HookPoint& point) {
    double& copied = copied_[point.stay];
    const Bytes bytes = stays_[point.stay];
    if (point.kind == HookPoint::Kind::copy_begins) copied = send(bytes);
    if (point.kind == HookPoint::Kind::fetched) copied = bring(bytes);
    if (point.kind == HookPoint::Kind::let_go || point.kind == HookPoint::Kind::needed) {
      now_ = std::max(now_, copied);
    }
  }

  void run(NodeId id) {
    const KernelNode& node = step_.graph->node(id);
    if (is_copy(node, offload_kernel)) return send_gradient(node.reads.front().storage);
    if (is_copy(node, fetch_kernel)) {
      const StorageId piece = node.writes.front().storage;
      if (node.phase == Phase::update) return bring_parameter(piece);
      arrival_[piece.index()] = bring(step_.bytes(piece));
      return;
    }
    for (const TensorView& view : node.reads) wait_for(view.storage);
    for (const StorageId held : node.holds) wait_for(held);
    const double seconds = rates_.gpu(step_, id);
    now_ += seconds;
    kernels_ += seconds;
  }

  [[nodiscard]] HookedSeconds seconds() const { return {now_, kernels_}; }

 private:
  void wait_for(StorageId storage) { now_ = std::max(now_, arrival_[storage.index()]); }
  double send(Bytes bytes) { return out_ = std::max(now_, out_) + rates_.to_host(bytes); }
  double bring(Bytes bytes) { return in_ = std::max(now_, in_) + rates_.from_host(bytes); }

  /// Some gradients' copies may be under way; before one more the oldest has to be done.
  void send_gradient(StorageId gradient) {
    const std::size_t sent = gradients_.size();
    if (sent > gradients_in_flight) {
      now_ = std::max(now_, gradients_[sent - gradients_in_flight - 1]);
    }
    const Bytes bytes = step_.bytes(gradient);
    gradients_.push_back(send(bytes));
    const double seconds = update_.seconds_a_byte * static_cast<double>(bytes.count());
    late_ += seconds;
    cpu_ = std::max(cpu_, out_) + seconds;
    updated_.push_back(cpu_);
  }

  void bring_parameter(StorageId parameter) {
    if (update_.early) {
      in_ = std::max(in_, updated_[brought_]);
    } else if (brought_ == 0) {
      in_ = std::max({in_, now_, out_}) + late_;
    }
    ++brought_;
    now_ = std::max(now_, bring(step_.bytes(parameter)));
  }

  const SizedStep& step_;
  const std::vector<Bytes>& stays_;
  const StepRates& rates_;
  const HostUpdateRate& update_;
  std::vector<double> arrival_;    // by storage: of a streamed piece
  std::vector<double> copied_;     // by stay: when its last copy is done
  std::vector<double> gradients_;  // when each one's copy is done
  std::vector<double> updated_;    // when each one's parameter is updated, if early
  double now_ = 0, kernels_ = 0, out_ = 0, in_ = 0;
  double cpu_ = 0, late_ = 0;  // when early updates are done; the seconds of all together
  std::size_t brought_ = 0;    // parameters
};

}  // namespace

HookedSeconds hooked_seconds(const SizedStep& step, const HookedGraph& hooked,
                             const std::vector<Bytes>& bytes_of_stays, const StepRates& rates,
                             const HostUpdateRate& update) {
  StepClock clock(step, bytes_of_stays, rates, update);
  auto point = hooked.points.begin();
  auto copy = hooked.copies.begin();
  for (std::size_t n = 0; n < step.graph->nodes.size(); ++n) {
    const NodeId id = NodeId::of(n);
    for (; point != hooked.points.end() && point->before <= id; ++point) clock.pass(*point);
    if (copy != hooked.copies.end() && *copy == id) {
      ++copy;
    } else {
      clock.run(id);
    }
  }
  for (; point != hooked.points.end(); ++point) clock.pass(*point);
  return clock.seconds();
}

}  // namespace stowage
