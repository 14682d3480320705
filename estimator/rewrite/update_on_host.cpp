#include "estimator/rewrite/update_on_host.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "estimator/rewrite/host_copies.hpp"
#include "estimator/rewrite/node_insertion.hpp"
#include "estimator/rewrite/parameter_updates.hpp"
#include "estimator/rewrite/renumber.hpp"
#include "estimator/step/unique_names.hpp"

namespace stowage {

namespace {

using OnHost = UpdateChoice::OnHost;

class MovedUpdates {
 public:
  MovedUpdates(StepGraph step, ParameterUpdates updates, const UpdateChoice& choice)
      : step_(std::move(step)),
        updates_(std::move(updates)),
        choice_(choice),
        on_host_(step_.gradients.size(), choice.on_host == OnHost::all) {
    for (const ParameterId id : choice.parameters) on_host_[id.index()] = true;
    for (const WholeGradient& one : updates_.gradients) {
      if (is_on_host(one.parameter)) moved_.push_back(one);
    }
  }

  StepGraph run() && {
    keep_what_updates_hold();
    keep_on_host();
    divide_updates();
    put_together();
    drop_what_is_gone();
    step_.settings.early_updates = choice_.early;
    return std::move(step_);
  }

 private:
  [[nodiscard]] bool is_on_host(ParameterId id) const {
    return id.valid() ? on_host_[id.index()] : choice_.on_host == OnHost::all;
  }

  /// A variable that the script lets go during or behind the updates (a model's output): the nodes
  /// that hold it leave, so that it is held to the step's end.
  void keep_what_updates_hold() {
    std::vector<bool> is_made(step_.storages.size(), false);
    for (const KernelNode& node : step_.nodes) {
      if (node.phase == Phase::update) continue;
      for (const TensorView& view : node.writes) is_made[view.storage.index()] = true;
    }
    for (const WholeGradient& one : updates_.gradients) is_made[one.gradient.index()] = false;
    for (const KernelNode& node : step_.nodes) {
      if (node.phase != Phase::update) continue;
      for (const StorageId id : node.holds) {
        const bool is_transient = step_.storage(id).persistence == Persistence::transient;
        if (!is_made[id.index()] || !is_transient) continue;
        step_.script_holds.update(id, [](ScriptHold& hold) { hold.held_to_end = true; });
      }
    }
  }

  void keep_on_host() {
    if (choice_.early) {
      for (const WholeGradient& one : updates_.gradients) {
        step_.script_holds.set(one.gradient, {});
      }
    }
    if (choice_.on_host == OnHost::none) return;
    Affine gradients, state;
    for (const WholeGradient& one : moved_) {
      gradients = gradients + step_.storage(one.gradient).bytes;
      step_.script_holds.set(one.gradient, {});
    }
    for (const Storage& storage : step_.storages) {
      if (is_moved_state(storage)) state = state + storage.bytes;
    }
    // Parameters and gradients have the same size: the optimizer's copy of each.
    step_.host_buffers.push_back({"the optimizer's parameters", gradients.constant, true});
    step_.host_buffers.push_back({"gradients", gradients.constant, true});
    step_.host_state_bytes += state.constant;
  }

  [[nodiscard]] bool is_moved_state(const Storage& storage) const {
    return storage.storage_class == StorageClass::optimizer_state && is_on_host(storage.parameter);
  }

  /// The nodes of updates that stay on the GPU, by where they go: behind their own places, or
  /// behind a gradient.
  void divide_updates() {
    if (choice_.on_host == OnHost::all) return;
    std::vector<std::int32_t> group_of(step_.gradients.size(), 0);
    if (choice_.early) std::iota(group_of.begin(), group_of.end(), 0);
    for (std::size_t p = 0; p < group_of.size(); ++p) {
      if (on_host_[p]) group_of[p] = -1;
    }
    for (std::size_t n = 0; n < step_.nodes.size(); ++n) {
      const KernelNode& node = step_.nodes[n];
      if (node.phase != Phase::update) continue;
      for (auto& [group, part] : divided(step_, updates_, node, group_of)) {
        if (!choice_.early) {
          at_its_place_[n] = std::move(part);
          continue;
        }
        const StorageId value = value_of(ParameterId::of(static_cast<std::size_t>(group)));
        part.name = dotted(part.name, step_.storage(value).name);
        behind_gradient_[ParameterId::of(static_cast<std::size_t>(group))].push_back(
            std::move(part));
      }
    }
  }

  [[nodiscard]] StorageId value_of(ParameterId id) const {
    return std::ranges::find(updates_.gradients, id, &WholeGradient::parameter)->value;
  }

  /// The nodes without the updates that moved, each gradient's copy or update where it is whole,
  /// and the parameters' copies at the end.
  void put_together() {
    NodeInsertion nodes(step_.nodes.size(), step_.nodes.size() + 2 * moved_.size() + 1);
    std::size_t next = 0;
    for (std::size_t n = 0; n < step_.nodes.size(); ++n) {
      if (step_.nodes[n].phase == Phase::update) {
        nodes.drop();
        const auto part = at_its_place_.find(n);
        if (part != at_its_place_.end()) nodes.insert(std::move(part->second));
        continue;
      }
      nodes.keep(std::move(step_.nodes[n]));
      const std::vector<WholeGradient>& whole = updates_.gradients;
      for (; next < whole.size() && whole[next].after == n; ++next) {
        put_behind(whole[next], nodes);
      }
    }
    if (choice_.early) keep_first_gradient(*nodes.last());
    for (const WholeGradient& one : moved_) {
      nodes.insert(copy_from_host(step_, one.value, step_.storage(one.value).name, Phase::update));
    }
    step_.micro_batch = {};
    std::move(nodes).put_into(step_);
  }

  void put_behind(const WholeGradient& whole, NodeInsertion& nodes) {
    const auto updates = behind_gradient_.find(whole.parameter);
    if (updates != behind_gradient_.end()) {
      for (KernelNode& node : updates->second) nodes.insert(std::move(node));
    }
    if (!is_on_host(whole.parameter)) return;
    KernelNode copy =
        copy_to_host(step_, whole.gradient, step_.storage(whole.gradient).name, Phase::backward);
    // So many copies before it may still be under way.
    for (std::size_t i = copied_ - std::min(copied_, gradients_in_flight); i < copied_; ++i) {
      copy.holds.push_back(moved_[i].gradient);
    }
    ++copied_;
    nodes.insert(std::move(copy));
  }

  /// Hooks run within backward(), which keeps the gradient that it starts from until it returns.
  void keep_first_gradient(KernelNode& last) const {
    for (const ScriptVariable& variable : step_.micro_batch.variables) {
      if (variable.kind != ScriptVariable::Kind::first_gradient) continue;
      last.holds.push_back(variable.storage);
    }
  }

  /// The optimizer's state, and what its kernels made for themselves.
  void drop_what_is_gone() {
    std::vector<bool> touched(step_.storages.size(), false);
    const auto touch = [&](StorageId id) { touched[id.index()] = true; };
    for (const KernelNode& node : step_.nodes) {
      for (const TensorView& view : node.reads) touch(view.storage);
      for (const TensorView& view : node.writes) touch(view.storage);
      for (const StorageId id : node.temporaries) touch(id);
      for (const StorageId id : node.holds) touch(id);
    }
    std::vector<bool> gone(step_.storages.size(), false);
    for (std::size_t i = 0; i < gone.size(); ++i) {
      const Storage& storage = step_.storages[i];
      gone[i] =
          is_moved_state(storage) || (!touched[i] && storage.persistence == Persistence::transient);
    }
    drop_storages(step_, gone);
  }

  StepGraph step_;
  const ParameterUpdates updates_;
  const UpdateChoice& choice_;
  std::vector<bool> on_host_;                       // by ParameterId
  std::vector<WholeGradient> moved_;                // those that go to the host, in their order
  std::map<std::size_t, KernelNode> at_its_place_;  // by node
  std::map<ParameterId, std::vector<KernelNode>> behind_gradient_;  // of early updates
  std::size_t copied_ = 0;                                          // gradients, so far
};

}  // namespace

Result<StepGraph> with_updates(StepGraph step, const UpdateChoice& choice) {
  auto updates = parameter_updates(step);
  if (!updates) return tl::unexpected(std::move(updates.error()));
  if (choice.early && updates->late) return failure(*updates->late);
  const bool divides = choice.on_host != OnHost::all && !choice.changes_nothing();
  if (divides && updates->undivided) return failure(*updates->undivided);
  return MovedUpdates(std::move(step), *std::move(updates), choice).run();
}

Result<StepGraph> with_update_on_host(StepGraph step) {
  return with_updates(std::move(step), {.on_host = OnHost::all});
}

}  // namespace stowage
