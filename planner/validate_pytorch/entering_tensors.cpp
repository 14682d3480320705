#include "planner/validate_pytorch/entering_tensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace stowage {

namespace {

bool has_recorded_calls(const StepGraph& step) {
  return std::ranges::any_of(step.saved,
                             [](const SavedTensor& saved) { return saved.call.has_value(); });
}

/// By storage: the first node of forward that writes it; none: forward does not.
std::vector<NodeId> first_writes(const StepGraph& step) {
  std::vector<NodeId> made(step.storages.size());
  for (std::size_t n = step.nodes.size(); n-- > 0;) {
    if (!runs_in_forward(step.nodes[n])) continue;
    for (const TensorView& view : step.nodes[n].writes) made[view.storage.index()] = NodeId::of(n);
  }
  return made;
}

/// What the region's kernels read that was made before them, each storage as it is seen first.
std::vector<TensorView> given_views(const StepGraph& step, const ModuleSpan& span,
                                    const std::vector<NodeId>& made) {
  std::vector<TensorView> views;
  std::set<StorageId> seen;
  for (std::size_t n = span.first.index(); n <= span.last.index(); ++n) {
    for (const TensorView& view : step.nodes[n].reads) {
      const NodeId maker = made[view.storage.index()];
      const bool is_given = maker.valid() && maker < span.first &&
                            step.storage(view.storage).persistence == Persistence::transient;
      if (is_given && seen.insert(view.storage).second) views.push_back(view);
    }
  }
  return views;
}

SavedCall call_of(const ScriptRegion& region, std::size_t number, const TensorView& view,
                  const ModuleSpan& span) {
  return {.key = fmt::format("{}#input{}", region.name, number),
          .view = view,
          .packed_after = NodeId{span.first.value - 1},
          .unpacked_before = {}};
}

}  // namespace

std::vector<std::vector<SavedCall>> entering_tensors(const StepGraph& step,
                                                     const ScriptModules& modules,
                                                     const std::vector<ScriptRegion>& regions,
                                                     const std::vector<ModuleSpan>& spans) {
  const std::vector<NodeId> made = first_writes(step);
  std::vector<std::vector<TensorView>> given;
  std::multiset<StorageId> entered;
  for (const ModuleSpan& span : spans) {
    given.push_back(given_views(step, span, made));
    for (const TensorView& view : given.back()) entered.insert(view.storage);
  }
  std::vector<std::vector<SavedCall>> calls(regions.size());
  if (!modules.are_known() && has_recorded_calls(step)) return calls;
  for (std::size_t r = 0; r < regions.size(); ++r) {
    const ScriptRegion& region = regions[r];
    if (!modules.are_known()) {
      for (const TensorView& view : given[r]) {
        const StorageClass kind = step.storage(view.storage).storage_class;
        if (kind != StorageClass::activation || entered.count(view.storage) > 1) continue;
        calls[r].push_back(call_of(region, calls[r].size(), view, spans[r]));
      }
      continue;
    }
    const RecordedModule* const called =
        region.row ? modules.child(region.module, region.row->first) : modules.find(region.module);
    if (called == nullptr || spans[r].first.index() == 0) continue;
    for (const RecordedModule::Input& input : called->inputs) {
      const bool enters =
          std::ranges::find(given[r], input.view.storage, &TensorView::storage) != given[r].end();
      if (!enters || !input.held_until.valid()) continue;
      SavedCall call =
          call_of(region, static_cast<std::size_t>(input.number), input.view, spans[r]);
      call.held_until = input.held_until;
      calls[r].push_back(std::move(call));
    }
  }
  return calls;
}

}  // namespace stowage
