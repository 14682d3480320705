#include "planner/pytorch/saved_moments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "estimator/step/operator_lowering.hpp"
#include "estimator/step/saved_storages.hpp"

namespace stowage {

namespace {

struct OperatorNodes {
  NodeId last_forward, first_backward;
};

std::vector<OperatorNodes> nodes_by_operator(const StepGraph& step) {
  std::vector<OperatorNodes> nodes(step.origins.size());
  for (std::size_t n = 0; n < step.nodes.size(); ++n) {
    const KernelNode& node = step.nodes[n];
    if (!node.op.valid() || node.micro_batch > 0) continue;
    OperatorNodes& of = nodes[node.op.index()];
    if (node.phase == Phase::forward || node.phase == Phase::loss) {
      of.last_forward = NodeId::of(n);
    } else if (node.phase == Phase::backward && !of.first_backward.valid()) {
      of.first_backward = NodeId::of(n);
    }
  }
  return nodes;
}

/// The view with which the operator's kernels read or write the storage.
TensorView view_of(const StepGraph& step, const SavedTensor& saved, const OperatorNodes& nodes) {
  for (std::size_t n = nodes.last_forward.index(); step.nodes[n].op == saved.op; --n) {
    const KernelNode& node = step.nodes[n];
    for (const auto* views : {&node.writes, &node.reads}) {
      const auto found = std::ranges::find(*views, saved.storage, &TensorView::storage);
      if (found != views->end()) return *found;
    }
    if (n == 0) break;
  }
  return contiguous_view(saved.storage, {step.storage(saved.storage).bytes}, DataType::uint8);
}

/// What torch.utils.checkpoint keeps of a region, no hook is called for.
bool is_call_of_hook(std::string_view role) {
  return role != region_input_role && role != kept_result_role;
}

class Moments {
 public:
  explicit Moments(const StepGraph& step) : step_(step), nodes_(nodes_by_operator(step)) {}

  std::vector<SavedMoment> run() && {
    const bool is_recorded = has_recorded_keys(step_);
    for (const SavedTensor& saved : step_.saved) {
      if (saved.call) {
        moments_.push_back({saved.call->key, saved.call->view, saved.call->packed_after,
                            saved.call->unpacked_before, saved.call->held_until});
      } else if (!is_recorded && saved.op.valid() && is_call_of_hook(saved.role)) {
        add_lowered(saved);
      }
    }
    std::ranges::stable_sort(moments_, {}, &SavedMoment::packed_after);
    return std::move(moments_);
  }

 private:
  void add_lowered(const SavedTensor& saved) {
    const OperatorNodes& nodes = nodes_[saved.op.index()];
    if (!nodes.last_forward.valid()) return;
    const std::string name = fmt::format("{}#{}", step_.layer(saved.op), saved.role);
    const int times = ++times_[name];
    moments_.push_back({times == 1 ? name : fmt::format("{}~{}", name, times),
                        view_of(step_, saved, nodes), nodes.last_forward, nodes.first_backward});
  }

  const StepGraph& step_;
  std::vector<OperatorNodes> nodes_;
  std::map<std::string, int> times_;
  std::vector<SavedMoment> moments_;
};

}  // namespace

std::vector<SavedMoment> saved_moments(const StepGraph& step) { return Moments(step).run(); }

bool has_recorded_keys(const StepGraph& step) {
  return std::ranges::any_of(step.saved, is_recorded_call);
}

bool names_are_recorded(const StepDocument& document) {
  const StepGraph& step = *document.graph;
  return was_recorded(document) && (step.saved.empty() || has_recorded_keys(step));
}

}  // namespace stowage
