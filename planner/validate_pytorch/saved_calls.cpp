#include "planner/validate_pytorch/saved_calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "estimator/step/operator_lowering.hpp"
#include "estimator/step/saved_storages.hpp"

namespace stowage {

namespace {

/// What a described step's operator has run: its last forward kernel, its first backward one, and
/// how its forward kernels see each storage, the last kernel before those in front of it.
struct OperatorRun {
  NodeId forward, backward;
  std::map<StorageId, TensorView> views;
};

std::vector<OperatorRun> operator_runs(const StepGraph& step) {
  std::vector<OperatorRun> runs(step.origins.size());
  for (std::size_t n = step.nodes.size(); n-- > 0;) {
    const KernelNode& node = step.nodes[n];
    if (!node.op.valid() || node.micro_batch > 0) continue;
    OperatorRun& run = runs[node.op.index()];
    if (node.phase == Phase::backward) run.backward = NodeId::of(n);
    if (node.phase != Phase::forward && node.phase != Phase::loss) continue;
    if (!run.forward.valid()) run.forward = NodeId::of(n);
    for (const auto* views : {&node.writes, &node.reads}) {
      for (const TensorView& view : *views) run.views.try_emplace(view.storage, view);
    }
  }
  return runs;
}

std::vector<SavedTensorCall> described_calls(const StepGraph& step,
                                             const std::set<StorageId>& left_out) {
  const std::vector<OperatorRun> runs = operator_runs(step);
  std::map<std::string, int> named;
  std::vector<SavedTensorCall> calls;
  for (const SavedTensor& saved : step.saved) {
    // What torch.utils.checkpoint keeps goes through no hook of ours.
    const bool is_of_checkpoint = saved.role == region_input_role || saved.role == kept_result_role;
    if (saved.call || !saved.op.valid() || is_of_checkpoint) continue;
    if (left_out.contains(saved.storage)) continue;
    const OperatorRun& run = runs[saved.op.index()];
    if (!run.forward.valid()) continue;
    std::string key = fmt::format("{}#{}", step.layer(saved.op), saved.role);
    if (const int times = ++named[key]; times > 1) key += fmt::format("~{}", times);
    const auto view = run.views.find(saved.storage);
    calls.push_back(
        {.key = std::move(key),
         .view = view != run.views.end()
                     ? view->second
                     : contiguous_view(saved.storage, {step.storage(saved.storage).bytes},
                                       DataType::uint8),
         .after = run.forward,
         .before = run.backward,
         .held = {}});
  }
  return calls;
}

}  // namespace

SavedCalls::SavedCalls(const StepGraph& step, const std::set<StorageId>& left_out)
    : within_(step.storages.size()) {
  // Of a recording, what has no key is of a later pass.
  if (std::ranges::none_of(step.saved, is_recorded_call)) calls_ = described_calls(step, left_out);
  for (const SavedTensor& saved : step.saved) {
    if (!saved.call || left_out.contains(saved.storage)) continue;
    const SavedCall& call = *saved.call;
    calls_.push_back(
        {call.key, call.view, call.packed_after, call.unpacked_before, call.held_until});
  }
  std::ranges::stable_sort(calls_, {}, &SavedTensorCall::after);
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    by_key_.emplace(calls_[i].key, i);
    within_[calls_[i].view.storage.index()].push_back(i);
    const NodeId before = calls_[i].before;
    if (before.valid() && (!backward_begins_.valid() || before < backward_begins_)) {
      backward_begins_ = before;
    }
  }
}

std::optional<std::size_t> SavedCalls::find(const std::string& key) const {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace stowage
