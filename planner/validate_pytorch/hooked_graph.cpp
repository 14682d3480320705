#include "planner/validate_pytorch/hooked_graph.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "estimator/base/data_type.hpp"
#include "estimator/rewrite/host_copies.hpp"
#include "estimator/rewrite/node_insertion.hpp"
#include "estimator/rewrite/parameter_updates.hpp"
#include "estimator/rewrite/renumber.hpp"
#include "estimator/rewrite/update_on_host.hpp"

namespace stowage {

namespace {

constexpr std::size_t none = static_cast<std::size_t>(-1);

class HookedRun {
 public:
  HookedRun(StepGraph step, const std::vector<StayOnHost>& stays,
            const std::vector<PieceOfModule>& pieces, const MovedUpdates& updates)
      : step_(std::move(step)),
        stays_(stays),
        pieces_(pieces),
        updates_(updates),
        old_storages_(step_.storages.size()),
        stay_of_(old_storages_, none),
        piece_of_(old_storages_, none),
        offset_of_(old_storages_, 0) {
    if (!updates.changes_nothing()) {
      gradients_ = gradients_of_parameters(step_);
      hold_to_end();
      divide_update();
    }
  }

  HookedGraph run() && {
    add_storages();
    for (std::size_t i = 0; i < stays_.size(); ++i) {
      stays_copied_.emplace(stays_[i].copied, i);
      stays_fetched_.emplace(stays_[i].fetched, i);
      stays_needed_.emplace(stays_[i].needed, i);
      (stays_[i].at_backward ? gone_before_ : gone_behind_).emplace(stays_[i].let_go, i);
    }
    for (std::size_t n = 0; n < step_.nodes.size(); ++n) {
      const bool moves = !updates_.changes_nothing() && step_.nodes[n].phase == Phase::update;
      before(NodeId::of(n));
      if (moves) {
        nodes_.drop();
        const auto left = left_at_.find(NodeId::of(n));
        if (left != left_at_.end()) nodes_.insert(std::move(left->second));
      } else {
        keep(NodeId::of(n));
      }
      behind(NodeId::of(n));
    }
    if (updates_.early) keep_first_gradient();
    for (const GradientOfParameter& one : gradients_) {
      if (!is_on_host(one.parameter)) continue;
      nodes_.insert(copy_from_host(step_, one.value, "", Phase::update));
    }
    std::move(nodes_).put_into(step_);
    drop_what_left();
    return {std::move(step_), std::move(points_), std::move(copies_)};
  }

 private:
  /// What belongs to no parameter is on the host with all of them.
  [[nodiscard]] bool is_on_host(ParameterId id) const {
    return id.valid() ? updates_.on_host[id.index()] : updates_.all_on_host;
  }

  /// What a kernel of the update holds is what the script has not let go of by then: a model's
  /// output, its logits. The script does so whether that kernel is on the GPU or not.
  void hold_to_end() {
    std::set<StorageId> of_script;
    for (const KernelNode& node : step_.nodes) {
      if (node.phase == Phase::update) continue;
      for (const TensorView& view : node.writes) {
        const Storage& storage = step_.storage(view.storage);
        if (storage.persistence == Persistence::transient) of_script.insert(view.storage);
      }
    }
    for (const GradientOfParameter& one : gradients_) of_script.erase(one.gradient);
    for (const KernelNode& node : step_.nodes) {
      if (node.phase != Phase::update) continue;
      for (const StorageId id : node.holds) {
        if (!of_script.contains(id)) continue;
        step_.script_holds.update(id, [](ScriptHold& hold) { hold.held_to_end = true; });
      }
    }
  }

  /// The parts of the update that the GPU keeps: where they stand, or behind their gradients.
  void divide_update() {
    if (updates_.all_on_host) return;
    const auto parts = parameter_updates(step_);
    if (!parts) return;  // why_update_stays() has refused it
    constexpr std::int32_t left_out = -1;
    std::vector<std::int32_t> group_of(step_.gradients.size(), left_out);
    for (std::size_t p = 0; p < group_of.size(); ++p) {
      if (updates_.on_host[p]) continue;
      group_of[p] = updates_.early ? static_cast<std::int32_t>(p) : 0;
    }
    for (std::size_t n = 0; n < step_.nodes.size(); ++n) {
      if (step_.nodes[n].phase != Phase::update) continue;
      for (auto& [group, part] : divided(step_, *parts, step_.nodes[n], group_of)) {
        if (updates_.early) {
          early_[ParameterId{group}].push_back(std::move(part));
        } else {
          left_at_.emplace(NodeId::of(n), std::move(part));
        }
      }
    }
  }

  /// backward() returns behind its last hook, and has the gradient that it starts from until then.
  void keep_first_gradient() {
    for (const ScriptVariable& variable : step_.micro_batch.variables) {
      if (variable.kind != ScriptVariable::Kind::first_gradient) continue;
      nodes_.last()->holds.push_back(variable.storage);
    }
  }

  [[nodiscard]] NodeId next() const { return NodeId{nodes_.last_id().value + 1}; }

  /// The storages that stays come back to, and the pieces: of forward, and of backward.
  void add_storages() {
    const auto add = [&](Storage storage) {
      step_.storages.push_back(std::move(storage));
      return StorageId::of(step_.storages.size() - 1);
    };
    for (std::size_t i = 0; i < stays_.size(); ++i) {
      stay_of_[stays_[i].storage.index()] = i;
      fetched_.push_back(add(step_.storage(stays_[i].storage)));
    }
    std::vector<std::size_t> backward;
    for (std::size_t b = 0; b < pieces_.size(); ++b) {
      const PieceOfModule& piece = pieces_[b];
      for (std::size_t p = 0; p < piece.parameters.size(); ++p) {
        piece_of_[piece.parameters[p].index()] = b;
        offset_of_[piece.parameters[p].index()] = piece.offsets[p];
      }
      const Storage storage{.name = "a piece",
                            .storage_class = StorageClass::parameter_copy,
                            .bytes = piece.bytes,
                            .op = step_.node(piece.first).op};
      forward_piece_.push_back(add(storage));
      backward_piece_.push_back(piece.first_backward.valid() ? add(storage) : StorageId());
      brought_.emplace(pieces_[b == 0 ? 0 : b - 1].first, forward_piece_.back());
      if (piece.first_backward.valid()) backward.push_back(b);
    }
    std::ranges::stable_sort(backward, {},
                             [&](std::size_t b) { return pieces_[b].first_backward; });
    for (std::size_t i = 0; i < backward.size(); ++i) {
      brought_.emplace(pieces_[backward[i == 0 ? 0 : i - 1]].first_backward,
                       backward_piece_[backward[i]]);
    }
  }

  void before(NodeId id) {
    const auto [first, end] = brought_.equal_range(id);
    for (auto at = first; at != end; ++at) {
      const Phase phase = step_.node(id).phase;
      nodes_.insert(copy_from_host(step_, at->second, "", phase));
    }
    pass(gone_before_, NodeId{id.value - 1}, HookPoint::Kind::let_go,
         [&](std::size_t i) { nodes_.last()->holds.push_back(stays_[i].storage); });
    pass(stays_fetched_, id, HookPoint::Kind::fetched, [&](std::size_t i) {
      copies_.push_back(next());
      nodes_.insert(copy_from_host(step_, fetched_[i], "", Phase::backward));
    });
    pass(stays_needed_, id, HookPoint::Kind::needed, [](std::size_t) {});
  }

  void keep(NodeId id) {
    KernelNode& node = nodes_.keep(std::move(step_.nodes[id.index()]));
    for (TensorView& view : node.reads) {
      const std::size_t b = piece_at(view.storage);
      if (b != none) {
        view.offset =
            view.offset + Affine(offset_of_[view.storage.index()] / element_size(view.type));
      }
      view.storage = moved(id, node.phase, view.storage);
    }
    for (StorageId& held : node.holds) held = moved(id, node.phase, held);
    for (std::size_t b = 0; b < pieces_.size(); ++b) {
      if (pieces_[b].first != id && pieces_[b].last != id) continue;
      if (std::ranges::find(node.holds, forward_piece_[b]) == node.holds.end()) {
        node.holds.push_back(forward_piece_[b]);
      }
    }
    const auto [first, end] = gone_behind_.equal_range(id);
    for (auto at = first; at != end; ++at) node.holds.push_back(stays_[at->second].storage);
  }

  void behind(NodeId id) {
    pass(stays_copied_, id, HookPoint::Kind::copy_begins, [&](std::size_t i) {
      copies_.push_back(next());
      nodes_.insert(copy_to_host(step_, stays_[i].storage, "", Phase::forward));
    });
    pass(gone_behind_, id, HookPoint::Kind::let_go, [](std::size_t) {});
    for (; whole_ < gradients_.size() && gradients_[whole_].after == id; ++whole_) {
      const GradientOfParameter& one = gradients_[whole_];
      for (KernelNode& node : early_[one.parameter]) nodes_.insert(std::move(node));
      if (is_on_host(one.parameter)) send(one.gradient);
    }
  }

  /// The gradients before it whose copies may still be under way are there.
  void send(StorageId gradient) {
    KernelNode copy = copy_to_host(step_, gradient, "", Phase::backward);
    const std::size_t earlier = std::min(sent_.size(), gradients_in_flight);
    copy.holds.insert(copy.holds.end(), sent_.end() - static_cast<std::ptrdiff_t>(earlier),
                      sent_.end());
    sent_.push_back(gradient);
    nodes_.insert(std::move(copy));
  }

  using Points = std::multimap<NodeId, std::size_t>;

  /// Notes that these stays' points are passed, and acts on each.
  template <typename Do>
  void pass(const Points& points, NodeId at, HookPoint::Kind kind, const Do& act) {
    const auto [first, end] = points.equal_range(at);
    for (auto one = first; one != end; ++one) {
      act(one->second);
      points_.push_back({next(), kind, one->second});
    }
  }

  [[nodiscard]] std::size_t piece_at(StorageId id) const {
    return id.index() < old_storages_ ? piece_of_[id.index()] : none;
  }

  /// Where a node finds what it touched in the storage.
  [[nodiscard]] StorageId moved(NodeId at, Phase phase, StorageId id) const {
    if (const std::size_t b = piece_at(id); b != none) {
      return phase == Phase::backward ? backward_piece_[b] : forward_piece_[b];
    }
    const std::size_t stay = id.index() < old_storages_ ? stay_of_[id.index()] : none;
    return stay != none && at >= stays_[stay].fetched ? fetched_[stay] : id;
  }

  /// Takes what is not on the GPU out of the step: streamed parameters, and of updates on the host
  /// the optimizer's state and what its kernels made.
  void drop_what_left() {
    std::vector<bool> is_gone(step_.storages.size(), false);
    std::vector<std::size_t> gone_before(old_storages_ + 1, 0);
    for (std::size_t s = 0; s < old_storages_; ++s) {
      is_gone[s] = piece_of_[s] != none;
      gone_before[s + 1] = gone_before[s] + (is_gone[s] ? 1 : 0);
    }
    if (!updates_.changes_nothing()) {
      mark_update(is_gone);
      for (const GradientOfParameter& one : gradients_) {
        if (updates_.early || is_on_host(one.parameter)) step_.script_holds.set(one.gradient, {});
      }
      step_.micro_batch = {};
    }
    drop_storages(step_, is_gone);
    MicroBatch& part = step_.micro_batch;
    for (StorageId* const bound : {&part.first_storage, &part.end_storage}) {
      if (bound->valid()) *bound = StorageId::of(bound->index() - gone_before[bound->index()]);
    }
    into_micro_batch(step_, old_storages_ - gone_before.back());
  }

  void mark_update(std::vector<bool>& is_gone) const {
    std::vector<bool> is_used(step_.storages.size(), false);
    for (const KernelNode& node : step_.nodes) {
      for (const auto* views : {&node.reads, &node.writes}) {
        for (const TensorView& view : *views) is_used[view.storage.index()] = true;
      }
      for (const auto* ids : {&node.temporaries, &node.holds}) {
        for (const StorageId id : *ids) is_used[id.index()] = true;
      }
    }
    for (std::size_t s = 0; s < is_gone.size(); ++s) {
      const Storage& storage = step_.storages[s];
      const bool is_state = storage.storage_class == StorageClass::optimizer_state;
      if ((is_state && is_on_host(storage.parameter)) ||
          (storage.persistence == Persistence::transient && !is_used[s])) {
        is_gone[s] = true;
      }
    }
  }

  StepGraph step_;
  const std::vector<StayOnHost>& stays_;
  const std::vector<PieceOfModule>& pieces_;
  const MovedUpdates& updates_;
  std::size_t old_storages_;
  std::vector<std::size_t> stay_of_, piece_of_;  // by old storage
  std::vector<std::int64_t> offset_of_;          // by old storage: within its piece
  std::vector<StorageId> fetched_;               // by stay
  std::vector<StorageId> forward_piece_, backward_piece_;
  std::multimap<NodeId, StorageId> brought_;  // pieces, by the node before which they come
  Points stays_copied_, stays_fetched_, stays_needed_, gone_before_, gone_behind_;
  std::vector<GradientOfParameter> gradients_;
  std::size_t whole_ = 0;                                 // of the gradients
  std::vector<StorageId> sent_;                           // gradients
  std::map<ParameterId, std::vector<KernelNode>> early_;  // updates
  std::map<NodeId, KernelNode> left_at_;                  // the update's parts, by their node
  NodeInsertion nodes_;
  std::vector<HookPoint> points_;
  std::vector<NodeId> copies_;
};

}  // namespace

std::vector<GradientOfParameter> gradients_of_parameters(const StepGraph& step) {
  std::map<ParameterId, StorageId> parameters;
  for (std::size_t s = 0; s < step.storages.size(); ++s) {
    const Storage& storage = step.storages[s];
    if (storage.storage_class != StorageClass::parameter) continue;
    parameters.emplace(storage.parameter, StorageId::of(s));
  }
  std::vector<NodeId> last_write(step.storages.size());
  for (std::size_t n = 0; n < step.nodes.size(); ++n) {
    if (step.nodes[n].phase == Phase::update) continue;
    for (const TensorView& view : step.nodes[n].writes) {
      last_write[view.storage.index()] = NodeId::of(n);
    }
  }
  std::vector<GradientOfParameter> found;
  for (std::size_t p = 0; p < step.gradients.size(); ++p) {
    const StorageId gradient = step.gradients[p].storage;
    const auto parameter = parameters.find(ParameterId::of(p));
    if (!gradient.valid() || parameter == parameters.end()) continue;
    const NodeId after = last_write[gradient.index()];
    if (!after.valid()) continue;
    found.push_back({after, gradient, parameter->second, parameter->first});
  }
  std::ranges::sort(
      found, {}, [](const GradientOfParameter& one) { return std::pair(one.after, one.gradient); });
  return found;
}

HookedGraph hooked_graph(StepGraph step, const std::vector<StayOnHost>& stays,
                         const std::vector<PieceOfModule>& pieces, const MovedUpdates& updates) {
  return HookedRun(std::move(step), stays, pieces, updates).run();
}

}  // namespace stowage
