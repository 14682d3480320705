#include "estimator/rewrite/update_on_host.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "estimator/rewrite/host_copies.hpp"
#include "estimator/rewrite/node_insertion.hpp"
#include "estimator/rewrite/renumber.hpp"

namespace stowage {

namespace {

/// A gradient that goes to the host.
struct Arrival {
  StorageId gradient, parameter;
  std::size_t after = 0;  ///< the last node that makes it
};

class HostUpdate {
 public:
  explicit HostUpdate(StepGraph step)
      : step_(std::move(step)), parameter_of_(step_.storages.size()) {}

  Result<StepGraph> run() && {
    find_gradients();
    if (auto wrong = problem()) return failure(*std::move(wrong));
    find_arrivals();
    keep_on_host();
    put_together();
    drop_what_is_gone();
    return std::move(step_);
  }

 private:
  [[nodiscard]] bool is_gradient(StorageId id) const { return parameter_of_[id.index()].valid(); }

  void find_gradients() {
    std::map<ParameterId, StorageId> parameters;
    for (std::size_t i = 0; i < step_.storages.size(); ++i) {
      const Storage& storage = step_.storages[i];
      if (storage.storage_class != StorageClass::parameter || !storage.parameter.valid()) continue;
      parameters.emplace(storage.parameter, StorageId::of(i));
    }
    for (std::size_t p = 0; p < step_.gradients.size(); ++p) {
      const StorageId gradient = step_.gradients[p].storage;
      const auto parameter = parameters.find(ParameterId::of(p));
      if (gradient.valid() && parameter != parameters.end()) {
        parameter_of_[gradient.index()] = parameter->second;
      }
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

  void find_arrivals() {
    std::map<StorageId, std::size_t> last;  // by gradient
    for (std::size_t n = 0; n < step_.nodes.size(); ++n) {
      if (step_.nodes[n].phase == Phase::update) continue;
      for (const TensorView& view : step_.nodes[n].writes) {
        if (is_gradient(view.storage)) last[view.storage] = n;
      }
    }
    for (const auto& [gradient, after] : last) {
      arrivals_.push_back({gradient, parameter_of_[gradient.index()], after});
    }
    std::ranges::stable_sort(arrivals_, {}, &Arrival::after);
  }

  void keep_on_host() {
    Affine gradients, state;
    for (const Arrival& arrival : arrivals_) {
      gradients = gradients + step_.storage(arrival.gradient).bytes;
      step_.script_holds.set(arrival.gradient, {});
    }
    for (const Storage& storage : step_.storages) {
      if (storage.storage_class == StorageClass::optimizer_state) state = state + storage.bytes;
    }
    // Parameters and gradients have the same size: the optimizer's copy of each.
    step_.host_buffers.push_back({"the optimizer's parameters", gradients.constant, true});
    step_.host_buffers.push_back({"gradients", gradients.constant, true});
    step_.host_state_bytes += state.constant;
  }

  /// The nodes without updates, each gradient's copy behind its arrival, the parameters' at the
  /// end.
  void put_together() {
    NodeInsertion nodes(step_.nodes.size(), 2 * arrivals_.size() + 1);
    std::size_t next = 0;
    for (std::size_t n = 0; n < step_.nodes.size(); ++n) {
      if (step_.nodes[n].phase == Phase::update) {
        nodes.drop();
        continue;
      }
      nodes.keep(std::move(step_.nodes[n]));
      for (; next < arrivals_.size() && arrivals_[next].after == n; ++next) {
        const StorageId gradient = arrivals_[next].gradient;
        KernelNode copy =
            copy_to_host(step_, gradient, step_.storage(gradient).name, Phase::backward);
        // So many copies before it may still be under way.
        for (std::size_t i = next - std::min(next, gradients_in_flight); i < next; ++i) {
          copy.holds.push_back(arrivals_[i].gradient);
        }
        nodes.insert(std::move(copy));
      }
    }
    for (const Arrival& arrival : arrivals_) {
      nodes.insert(copy_from_host(step_, arrival.parameter, step_.storage(arrival.parameter).name,
                                  Phase::update));
    }
    std::move(nodes).put_into(step_);
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
      gone[i] = storage.storage_class == StorageClass::optimizer_state ||
                (!touched[i] && storage.persistence == Persistence::transient);
    }
    step_.micro_batch = {};
    drop_storages(step_, gone);
  }

  StepGraph step_;
  std::vector<StorageId> parameter_of_;  // by a gradient's storage; else none
  std::vector<Arrival> arrivals_;
};

}  // namespace

Result<StepGraph> with_update_on_host(StepGraph step) {
  if (step.settings.mode != Mode::train) return failure("an inference has no updates");
  if (step.settings.early_updates) return failure("its updates are early already");
  if (step.settings.micro_batches > 1) {
    return failure("several micro-batches add their gradients up on the GPU");
  }
  return HostUpdate(std::move(step)).run();
}

}  // namespace stowage
