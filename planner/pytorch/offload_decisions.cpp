#include "planner/pytorch/offload_decisions.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "estimator/step/saved_storages.hpp"
#include "planner/plan/two_sides.hpp"

namespace stowage {

namespace {

/// When the plan has brought a storage to the host, and when it begins to bring it back.
struct Swap {
  std::int32_t gone = -1, back = -1;  ///< boundaries
};

std::map<StorageId, Swap> swaps_of(const Plan& plan) {
  const std::vector<bool> saved = kept_by_autograd(*plan.step.graph);
  std::map<StorageId, Swap> swaps;
  for (const Transfer& transfer : plan.transfers) {
    if (!saved[transfer.storage.index()]) continue;
    Swap& swap = swaps[transfer.storage];
    if (direction_of(plan, transfer) == Direction::d2h) {
      swap.gone = transfer.end;
    } else {
      swap.back = transfer.begin;
    }
  }
  std::erase_if(swaps, [](const auto& of) { return of.second.gone < 0 || of.second.back < 0; });
  return swaps;
}

class Decisions {
 public:
  Decisions(const Plan& plan, const std::vector<SavedMoment>& moments)
      : graph_(*plan.step.graph),
        moments_(moments),
        last_forward_(graph_.storages.size()),
        last_written_(graph_.storages.size()) {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const KernelNode& node = graph_.nodes[n];
      for (const TensorView& view : node.writes)
        last_written_[view.storage.index()] = NodeId::of(n);
      if (node.phase != Phase::forward && node.phase != Phase::loss) continue;
      for (const auto* views : {&node.reads, &node.writes}) {
        for (const TensorView& view : *views) last_forward_[view.storage.index()] = NodeId::of(n);
      }
    }
    for (std::size_t i = 0; i < moments.size(); ++i) {
      own_[moments[i].view.storage].push_back(i);
      if (moments[i].unpacked_before.valid()) unpacks_.push_back(i);
    }
    std::ranges::stable_sort(unpacks_, {}, [&](std::size_t i) { return unpacked(i); });
  }

  [[nodiscard]] std::optional<OffloadDecision> decide(StorageId storage, const Swap& swap) const {
    const auto own = own_.find(storage);
    if (own == own_.end() || unpacks_.empty()) return std::nullopt;
    const std::size_t start = own->second.back();
    NodeId needed, held;
    OffloadDecision decision;
    for (const std::size_t i : own->second) {
      const SavedMoment& moment = moments_[i];
      decision.storage.saved.push_back({moment.key, moment.view.type, moment.view.shape});
      held = std::max(held, moment.held_until);
      if (!moment.unpacked_before.valid()) continue;
      if (!needed.valid() || moment.unpacked_before < needed) needed = moment.unpacked_before;
    }
    if (!needed.valid() || !moments_[start].packed_after.valid()) return std::nullopt;
    // A copy would be of an earlier value: RReLU saves its noise before its kernel draws it.
    if (last_written_[storage.index()] > moments_[start].packed_after) return std::nullopt;
    // What the script holds until backward, PyTorch cannot be made to let go.
    if (held >= first_unpack()) return std::nullopt;
    decision.storage.bytes = graph_.storage(storage).bytes;
    decision.storage.start = moments_[start].key;
    decision.first_unpack = needed;
    SavedStay& stay = decision.stay;
    stay.storage = storage;
    stay.copied_after = moments_[start].packed_after;
    set_release(start, swap, held, decision);
    set_fetch(swap, decision);
    if (stay.released_after >= stay.fetched_before) return std::nullopt;
    return decision;
  }

 private:
  [[nodiscard]] NodeId unpacked(std::size_t moment) const {
    return moments_[moment].unpacked_before;
  }
  /// The node before which backward asks for the first tensor.
  [[nodiscard]] NodeId first_unpack() const { return unpacked(unpacks_.front()); }

  /// At the first call behind that of `start` that finds the copy done and the script's own
  /// variables and calls without the storage (`held`), or when backward begins.
  void set_release(std::size_t start, const Swap& swap, NodeId held,
                   OffloadDecision& decision) const {
    const NodeId done = NodeId{
        std::max({swap.gone - 1, last_forward_[decision.stay.storage.index()].value, held.value})};
    for (std::size_t i = start + 1; i < moments_.size(); ++i) {
      const NodeId at = moments_[i].packed_after;
      if (at >= first_unpack()) break;
      if (at < done) continue;
      decision.stay.released_after = at;
      decision.storage.release = moments_[i].key;
      return;
    }
    decision.stay.released_after = NodeId{first_unpack().value - 1};
  }

  /// At the last call that is no later than in the plan.
  void set_fetch(const Swap& swap, OffloadDecision& decision) const {
    decision.stay.fetched_before = decision.first_unpack;
    const NodeId latest = std::min(NodeId{swap.back}, decision.first_unpack);
    const auto behind =
        std::ranges::upper_bound(unpacks_, latest, {}, [&](std::size_t i) { return unpacked(i); });
    if (behind == unpacks_.begin()) return;
    const std::size_t chosen = *(behind - 1);
    if (unpacked(chosen) == decision.first_unpack) return;
    if (unpacked(chosen) <= decision.stay.released_after) return;
    decision.stay.fetched_before = unpacked(chosen);
    decision.storage.fetch = moments_[chosen].key;
  }

  const StepGraph& graph_;
  const std::vector<SavedMoment>& moments_;
  std::vector<NodeId> last_forward_;  // by storage: the last node of forward that touches it
  std::vector<NodeId> last_written_;  // by storage: the last node that writes to it
  std::map<StorageId, std::vector<std::size_t>> own_;  // moments, in the order of saving
  std::vector<std::size_t> unpacks_;                   // moments, in the order of asking
};

}  // namespace

std::vector<OffloadDecision> offload_decisions(const Plan& plan,
                                               const std::vector<SavedMoment>& moments) {
  const Decisions decisions(plan, moments);
  std::vector<OffloadDecision> decided;
  for (const auto& [storage, swap] : swaps_of(plan)) {
    if (auto decision = decisions.decide(storage, swap)) decided.push_back(*std::move(decision));
  }
  std::ranges::stable_sort(
      decided, {}, [](const OffloadDecision& decision) { return decision.stay.copied_after; });
  return decided;
}

std::vector<SavedStay> stays_of(const std::vector<OffloadDecision>& decisions) {
  std::vector<SavedStay> stays;
  stays.reserve(decisions.size());
  for (const OffloadDecision& decision : decisions) stays.push_back(decision.stay);
  return stays;
}

}  // namespace stowage
