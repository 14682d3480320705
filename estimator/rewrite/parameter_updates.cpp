#include "estimator/rewrite/parameter_updates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "estimator/optimizer/optimizer_row.hpp"

namespace stowage {

namespace {

class UpdatesOfStep {
 public:
  explicit UpdatesOfStep(const StepGraph& step)
      : step_(step), gradient_of_(step.storages.size()), found_{} {
    found_.owner.resize(step.storages.size());
  }

  Result<ParameterUpdates> run() && {
    find_values();
    if (auto wrong = problem()) return failure(*std::move(wrong));
    find_gradients();
    find_owners();
    found_.late = lateness();
    return std::move(found_);
  }

 private:
  [[nodiscard]] bool is_gradient(StorageId id) const { return gradient_of_[id.index()].valid(); }

  void find_values() {
    std::map<ParameterId, StorageId> values;
    for (std::size_t i = 0; i < step_.storages.size(); ++i) {
      const Storage& storage = step_.storages[i];
      const StorageClass of = storage.storage_class;
      if (of == StorageClass::parameter || of == StorageClass::optimizer_state ||
          of == StorageClass::temporary) {
        found_.owner[i] = storage.parameter;
      }
      if (of != StorageClass::parameter || !storage.parameter.valid()) continue;
      values.emplace(storage.parameter, StorageId::of(i));
    }
    for (std::size_t p = 0; p < step_.gradients.size(); ++p) {
      const StorageId gradient = step_.gradients[p].storage;
      const auto value = values.find(ParameterId::of(p));
      if (!gradient.valid() || value == values.end()) continue;
      gradient_of_[gradient.index()] = value->second;
      found_.owner[gradient.index()] = value->first;
    }
  }

  [[nodiscard]] std::optional<std::string> problem() const {
    const auto name = [&](StorageId id) { return step_.storage(id).name; };
    for (std::size_t i = 0; i < step_.storages.size(); ++i) {
      if (!is_gradient(StorageId::of(i))) continue;
      if (step_.storages[i].persistence == Persistence::persistent) {
        return fmt::format(
            "'{}' stays from step to step: the optimizer is moved to the host where "
            "zero_grad sets gradients to None",
            step_.storages[i].name);
      }
    }
    std::vector<bool> made(step_.storages.size(),
                           false);  // by a gradient's own backward, or update
    for (const KernelNode& node : step_.nodes) {
      const bool updates = node.phase == Phase::update;
      for (const TensorView& view : node.reads) {
        const StorageId id = view.storage;
        const StorageClass of = step_.storage(id).storage_class;
        const bool is_state = of == StorageClass::optimizer_state || of == StorageClass::parameter;
        if (updates && !is_gradient(id) && !is_state && !made[id.index()]) {
          return fmt::format("the update's '{}' reads '{}'", node.name, name(id));
        }
        // Autograd adds to one gradient at a time; who reads several clips them by their norm.
        if (!updates && is_gradient(id) && !adds_to_it_alone(node, id)) {
          return fmt::format("'{}' reads the gradient '{}'", node.name, name(id));
        }
      }
      if (!updates) continue;
      for (const TensorView& view : node.writes) made[view.storage.index()] = true;
    }
    return std::nullopt;
  }

  [[nodiscard]] bool adds_to_it_alone(const KernelNode& node, StorageId gradient) const {
    if (node.phase != Phase::backward) return false;
    const auto is_another = [&](const TensorView& view) {
      return view.storage != gradient && is_gradient(view.storage);
    };
    return std::ranges::find(node.writes, gradient, &TensorView::storage) != node.writes.end() &&
           std::ranges::none_of(node.reads, is_another);
  }

  void find_gradients() {
    std::map<StorageId, std::size_t> last;  // by gradient
    for (std::size_t n = 0; n < step_.nodes.size(); ++n) {
      if (step_.nodes[n].phase == Phase::update) continue;
      for (const TensorView& view : step_.nodes[n].writes) {
        if (is_gradient(view.storage)) last[view.storage] = n;
      }
    }
    for (const auto& [gradient, after] : last) {
      found_.gradients.push_back(
          {found_.owner[gradient.index()], gradient, gradient_of_[gradient.index()], after});
    }
    std::ranges::stable_sort(found_.gradients, {}, &WholeGradient::after);
  }

  /// What the update makes for itself belongs to the parameter whose tensors it is made of: a
  /// foreach kernel makes its i-th result of the i-th tensor of each of its lists.
  void find_owners() {
    const OptimizerRow* row = find_optimizer(step_.settings.optimizer.name);
    if (row != nullptr && !row->source.starts_with("torch.optim.")) {
      found_.undivided = fmt::format("{} is no optimizer of torch.optim", row->name);
    }
    std::set<ParameterId> updated;
    for (const WholeGradient& one : found_.gradients) updated.insert(one.parameter);
    for (const KernelNode& node : step_.nodes) {
      if (node.phase != Phase::update) continue;
      for (std::size_t i = 0; i < node.writes.size(); ++i) {
        ParameterId& owner = found_.owner[node.writes[i].storage.index()];
        if (!owner.valid()) owner = owner_of_result(node, i);
        if (updated.contains(owner) || found_.undivided) continue;
        found_.undivided =
            owner.valid() ? fmt::format("'{}' updates a parameter without a gradient", node.name)
                          : fmt::format("'{}' works on several parameters together", node.name);
      }
    }
  }

  [[nodiscard]] ParameterId owner_of_result(const KernelNode& node, std::size_t result) const {
    const auto owner = [&](std::size_t read) {
      return found_.owner[node.reads[read].storage.index()];
    };
    const std::size_t results = node.writes.size(), reads = node.reads.size();
    if (results > 1 && reads % results == 0) {
      for (std::size_t read = result; read < reads; read += results) {
        if (owner(read).valid()) return owner(read);
      }
    }
    ParameterId only;
    for (std::size_t read = 0; read < reads; ++read) {
      if (!owner(read).valid()) continue;
      if (only.valid() && only != owner(read)) return {};
      only = owner(read);
    }
    return only;
  }

  /// A hook on a parameter runs at each backward of the script.
  [[nodiscard]] std::optional<std::string> lateness() const {
    const auto update = std::ranges::find(step_.nodes, Phase::update, &KernelNode::phase);
    const auto other = std::find_if(update, step_.nodes.end(), [](const KernelNode& node) {
      return node.phase != Phase::update;
    });
    if (other != step_.nodes.end()) {
      return fmt::format("'{}' runs after the first update", other->name);
    }
    std::vector<std::size_t> first(step_.storages.size(), step_.nodes.size());
    std::size_t last_forward = 0;
    for (std::size_t n = 0; n < step_.nodes.size(); ++n) {
      const Phase phase = step_.nodes[n].phase;
      if (phase == Phase::forward || phase == Phase::loss) last_forward = n;
      if (phase != Phase::backward) continue;
      for (const TensorView& view : step_.nodes[n].writes) {
        std::size_t& begin = first[view.storage.index()];
        begin = std::min(begin, n);
        if (!is_gradient(view.storage) || last_forward <= begin) continue;
        return fmt::format("several backward passes add to '{}'", step_.storage(view.storage).name);
      }
    }
    return std::nullopt;
  }

  const StepGraph& step_;
  std::vector<StorageId> gradient_of_;  // by a gradient's storage: its parameter; else none
  ParameterUpdates found_;
};

}  // namespace

Result<ParameterUpdates> parameter_updates(const StepGraph& step) {
  if (step.settings.mode != Mode::train) return failure("an inference has no updates");
  if (step.settings.early_updates) return failure("its updates are early already");
  if (step.settings.micro_batches > 1) {
    return failure("several micro-batches add their gradients up on the GPU");
  }
  return UpdatesOfStep(step).run();
}

std::map<std::int32_t, KernelNode> divided(const StepGraph& step, const ParameterUpdates& updates,
                                           const KernelNode& node,
                                           const std::vector<std::int32_t>& group_of) {
  std::map<std::int32_t, KernelNode> parts;
  std::map<std::int32_t, std::int64_t> written;
  std::int64_t all_written = 0;
  const auto group = [&](StorageId id) {
    const ParameterId owner = updates.owner[id.index()];
    return owner.valid() ? group_of[owner.index()] : -1;
  };
  for (const TensorView& view : node.writes) {
    const std::int64_t bytes = step.storage(view.storage).bytes.constant;
    all_written += bytes;
    if (group(view.storage) < 0) continue;
    written[group(view.storage)] += bytes;
    KernelNode& part = parts[group(view.storage)];
    if (!part.name.empty()) continue;
    part = node;
    part.reads.clear();
    part.writes.clear();
    part.temporaries.clear();
    part.holds.clear();
  }
  const auto share = [&](const auto& of, const auto& put) {
    if (updates.owner[of.index()].valid()) {
      const auto part = parts.find(group(of));
      if (part != parts.end()) put(part->second);
      return;
    }
    for (auto& [_, part] : parts) put(part);
  };
  for (const TensorView& view : node.reads) {
    share(view.storage, [&](KernelNode& part) { part.reads.push_back(view); });
  }
  for (const TensorView& view : node.writes) {
    share(view.storage, [&](KernelNode& part) { part.writes.push_back(view); });
  }
  for (const StorageId id : node.temporaries) {
    share(id, [&](KernelNode& part) { part.temporaries.push_back(id); });
  }
  for (const StorageId id : node.holds) {
    share(id, [&](KernelNode& part) { part.holds.push_back(id); });
  }
  for (auto& [of, part] : parts) {
    const double flops = static_cast<double>(node.flops.constant) *
                         static_cast<double>(written[of]) /
                         static_cast<double>(std::max(all_written, std::int64_t{1}));
    part.flops = static_cast<std::int64_t>(flops);
  }
  return parts;
}

}  // namespace stowage
