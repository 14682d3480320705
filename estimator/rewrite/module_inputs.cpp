#include "estimator/rewrite/module_inputs.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "estimator/model/operator_path.hpp"

namespace stowage {

namespace {

/// The modules that contain a layer, outermost first: "a" and "a.b" for "a.b.c". The layer itself
/// is not among them: its operator's rule decides what it holds.
std::vector<std::string_view> modules_of(std::string_view layer) {
  std::vector<std::string_view> modules;
  for (std::size_t dot = layer.find('.'); dot != layer.npos; dot = layer.find('.', dot + 1)) {
    modules.push_back(layer.substr(0, dot));
  }
  return modules;
}

struct Call {
  std::string_view module;
  std::int32_t first = 0;  // its first node
  std::set<StorageId> arguments;
};

/// By storage: the first node that writes it; -1: none.
std::vector<std::int32_t> first_writers(const StepGraph& step) {
  std::vector<std::int32_t> made(step.storages.size(), -1);
  for (std::size_t n = 0; n < step.nodes.size(); ++n) {
    for (const TensorView& view : step.nodes[n].writes) {
      std::int32_t& by = made[view.storage.index()];
      if (by < 0) by = static_cast<std::int32_t>(n);
    }
  }
  return made;
}

class Calls {
 public:
  Calls(StepGraph& step, const ModelGraph& model)
      : step_(step), model_(model), made_(first_writers(step)) {}

  void run() {
    const auto nodes = static_cast<std::int32_t>(step_.nodes.size());
    for (std::int32_t n = 0; n < nodes; ++n) {
      const KernelNode& node = step_.nodes[static_cast<std::size_t>(n)];
      enter(node.op.valid() ? modules_of(path_of(model_.op(node.op)))
                            : std::vector<std::string_view>(),
            n);
      for (const TensorView& view : node.reads) pass(view.storage);
    }
    leave(0, nodes - 1);
  }

 private:
  void enter(const std::vector<std::string_view>& modules, std::int32_t at) {
    std::size_t same = 0;
    while (same < std::min(open_.size(), modules.size()) && open_[same].module == modules[same]) {
      ++same;
    }
    leave(same, at - 1);
    for (std::size_t m = same; m < modules.size(); ++m) {
      open_.push_back({.module = modules[m], .first = at, .arguments = {}});
    }
  }

  /// The storage is an argument of each running call that began after the storage was made.
  void pass(StorageId id) {
    const Storage& storage = step_.storage(id);
    if (storage.persistence != Persistence::transient) return;
    if (storage.storage_class != StorageClass::activation) return;
    for (Call& call : open_) {
      if (made_[id.index()] < call.first) call.arguments.insert(id);
    }
  }

  /// All calls except the outermost `kept` return after the node.
  void leave(std::size_t kept, std::int32_t last) {
    for (; open_.size() > kept; open_.pop_back()) {
      KernelNode& node = step_.nodes[static_cast<std::size_t>(last)];
      for (const StorageId id : open_.back().arguments) {
        hold_in(node, id);
      }
    }
  }

  StepGraph& step_;
  const ModelGraph& model_;
  std::vector<std::int32_t> made_;
  std::vector<Call> open_;  // outermost first
};

}  // namespace

void hold_in(KernelNode& node, StorageId id) {
  const auto is_of = [&](const TensorView& view) { return view.storage == id; };
  const bool touched = std::ranges::any_of(node.reads, is_of) ||
                       std::ranges::any_of(node.writes, is_of) ||
                       std::ranges::find(node.holds, id) != node.holds.end();
  if (!touched) node.holds.push_back(id);
}

StepGraph with_module_inputs(StepGraph step, const ModelGraph& model) {
  const bool holds = step.settings.mode == Mode::inference && step.kernel_set().frees_by_reference;
  if (holds) Calls(step, model).run();
  return step;
}

}  // namespace stowage
