#include "planner/validate_pytorch/update_on_cpu.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace stowage {

namespace {

class UpdateReads {
 public:
  explicit UpdateReads(const StepGraph& step)
      : step_(step),
        is_gradient_(step.storages.size(), false),
        is_made_(step.storages.size(), false) {
    for (const TensorView& gradient : step.gradients) {
      if (gradient.storage.valid()) is_gradient_[gradient.storage.index()] = true;
    }
  }

  [[nodiscard]] std::optional<std::string> run() && {
    for (std::size_t s = 0; s < is_gradient_.size(); ++s) {
      if (!is_gradient_[s] || step_.storages[s].persistence == Persistence::transient) continue;
      return fmt::format("'{}' stays from step to step", step_.storages[s].name);
    }
    for (const KernelNode& node : step_.nodes) {
      const bool updates = node.phase == Phase::update;
      for (const TensorView& view : node.reads) {
        const bool is_wrong = updates ? !may_be_read_by_update(view.storage)
                                      : is_gradient_[view.storage.index()] && !adds_up(node, view);
        if (!is_wrong) continue;
        return fmt::format("'{}' reads '{}'", node.name, step_.storage(view.storage).name);
      }
      if (!updates) continue;
      for (const TensorView& view : node.writes) is_made_[view.storage.index()] = true;
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] bool may_be_read_by_update(StorageId id) const {
    const StorageClass kind = step_.storage(id).storage_class;
    return is_gradient_[id.index()] || is_made_[id.index()] || kind == StorageClass::parameter ||
           kind == StorageClass::optimizer_state;
  }

  /// Whether backward's kernel adds to this gradient, and reads no other.
  [[nodiscard]] bool adds_up(const KernelNode& node, const TensorView& gradient) const {
    if (node.phase != Phase::backward) return false;
    const auto is_another = [&](const TensorView& view) {
      return view.storage != gradient.storage && is_gradient_[view.storage.index()];
    };
    return std::ranges::find(node.writes, gradient.storage, &TensorView::storage) !=
               node.writes.end() &&
           std::ranges::none_of(node.reads, is_another);
  }

  const StepGraph& step_;
  std::vector<bool> is_gradient_, is_made_;  // by storage
};

}  // namespace

std::optional<std::string> why_update_stays(const StepGraph& step) {
  if (step.settings.mode != Mode::train) return "an inference has no update";
  if (step.settings.early_updates) return "the step updates each parameter within backward";
  return UpdateReads(step).run();
}

}  // namespace stowage
