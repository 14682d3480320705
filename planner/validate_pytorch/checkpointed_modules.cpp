#include "planner/validate_pytorch/checkpointed_modules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "estimator/rewrite/checkpoints.hpp"
#include "planner/validate_pytorch/entering_tensors.hpp"
#include "planner/validate_pytorch/module_span.hpp"
#include "planner/validate_pytorch/script_regions.hpp"

namespace stowage {

namespace {

/// The first storage that the region changes though it was there before the region ran; none: a
/// second run finds what the first one found. Buffers are written by the first run alone.
/// `made_before`: by storage, the first write in forward.
StorageId changed_before(const StepGraph& step, const ModuleSpan& span,
                         const std::vector<NodeId>& made_before) {
  std::set<StorageId> made;
  for (std::size_t n = span.first.index(); n <= span.last.index(); ++n) {
    const KernelNode& node = step.nodes[n];
    for (const TensorView& view : node.writes) {
      const Storage& storage = step.storage(view.storage);
      const bool reads =
          std::ranges::find(node.reads, view.storage, &TensorView::storage) != node.reads.end();
      const bool lasts = storage.persistence != Persistence::transient;
      if (lasts && storage.storage_class != StorageClass::buffer) return view.storage;
      const NodeId maker = made_before[view.storage.index()];
      const bool was_there = reads || (maker.valid() && maker < span.first);
      if (!lasts && was_there && !made.contains(view.storage)) return view.storage;
      made.insert(view.storage);
    }
  }
  return {};
}

bool saves_something(const StepGraph& step, const ModuleSpan& span) {
  return std::ranges::any_of(step.saved, [&](const SavedTensor& saved) {
    return std::ranges::binary_search(span.operators, saved.op) &&
           step.storage(saved.storage).persistence == Persistence::transient;
  });
}

class CheckRegions {
 public:
  CheckRegions(const PytorchPlan& plan, const PlanPlaces& places, const StepDocument& document)
      : plan_(plan), places_(places), step_(*document.graph), modules_(document.modules) {
    for (const std::string& name : plan.checkpoint) regions_.push_back(region_named(name));
    depths_ = modules_.nesting_depths(regions_);
    find_forward_writes();
  }

  CheckpointedModules run() && {
    // Each has kernels of its own, but for those that it lies in.
    const bool are_too_many = regions_.size() > 2 * step_.nodes.size();
    if (are_too_many) {
      note(0, "{} regions are more than {} kernels can have", regions_.size(), step_.nodes.size());
    }
    for (std::size_t i = 0; i < regions_.size() && !are_too_many; ++i) {
      spans_.push_back(module_span(step_, modules_, regions_[i]));
      take(i);
    }
    if (!regions_.empty() && !plan_.trains) {
      note(0, "an inference has no backward in which '{}' could run again", regions_[0].name);
    }
    std::optional<StepGraph> again;
    if (wrong_.count == 0) again = with_second_runs();
    return {.check = verdict("checkpointed modules", wrong_,
                             fmt::format("{} run again", plan_.checkpoint.size())),
            .step = std::move(again)};
  }

 private:
  template <typename... Arguments>
  void note(std::size_t i, fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    places_.note(wrong_, {"checkpoint", i, "module"}, text, std::forward<Arguments>(arguments)...);
  }

  void find_forward_writes() {
    made_.resize(step_.storages.size());
    written_.resize(step_.storages.size());
    for (std::size_t n = 0; n < step_.nodes.size(); ++n) {
      if (!runs_in_forward(step_.nodes[n])) continue;
      for (const TensorView& view : step_.nodes[n].writes) {
        const std::size_t s = view.storage.index();
        if (!made_[s].valid()) made_[s] = NodeId::of(n);
        written_[s] = NodeId::of(n);
      }
    }
  }

  void take(std::size_t i) {
    const ScriptRegion& region = regions_[i];
    const ModuleSpan& span = spans_[i];
    if (modules_.are_known() && !is_called(i)) return;
    if (!span.first.valid()) return note(i, "the step has no module '{}'", region.name);
    if (region.row && !modules_.are_known()) {
      return note(i, "'{}' is a row of children, which only a recording knows", region.name);
    }
    if (!span.is_in_one_piece) {
      return note(i, "'{}' does not run in one piece", region.name);
    }
    if (!saves_something(step_, span)) return note(i, "'{}' saves nothing", region.name);
    if (const StorageId changed = changed_before(step_, span, made_); changed.valid()) {
      return note(i, "'{}' would change '{}' a second time", region.name,
                  step_.storage(changed).name);
    }
    check_later_writes(i);
    for (const OperatorId op : span.operators) {
      if (taken_.emplace(depths_[i], op).second) continue;
      return note(i, "'{}' runs again as part of another module already", region.name);
    }
  }

  /// Whether the recording says that the region runs, once.
  bool is_called(std::size_t i) {
    const ScriptRegion& region = regions_[i];
    const RecordedModule* const module = modules_.find(region.module);
    if (module == nullptr) {
      note(i, "the step runs no module '{}', or runs it more than once", region.module);
      return false;
    }
    if (!region.row) return true;
    const auto [first, end] = *region.row;
    if (!module->is_sequence) {
      note(i, "'{}' is no nn.Sequential, whose children '{}' would be", region.module, region.name);
    } else if (first >= end) {
      note(i, "'{}' has no children", region.name);
    } else if (end > modules_.children(region.module)) {
      note(i, "'{}' has {} children", region.module, modules_.children(region.module));
    } else {
      return true;
    }
    return false;
  }

  /// PyTorch ends backward with an error where an input of the region was written since, and the
  /// second run ends where the last tensor is saved, before a kernel writes to that.
  void check_later_writes(std::size_t i) {
    const ModuleSpan& span = spans_[i];
    for (std::size_t n = span.first.index(); n <= span.last.index(); ++n) {
      for (const TensorView& view : step_.nodes[n].reads) {
        const std::size_t s = view.storage.index();
        const bool is_given = !made_[s].valid() || made_[s] < span.first;
        if (!is_given || written_[s] < span.first || persists(view.storage)) continue;
        return note(i, "'{}' writes to '{}', which '{}' is given", step_.node(written_[s]).name,
                    step_.storage(view.storage).name, regions_[i].name);
      }
    }
    for (const SavedTensor& saved : step_.saved) {
      const std::size_t s = saved.storage.index();
      if (!saved.call || persists(saved.storage) || written_[s] <= saved.call->packed_after ||
          !std::ranges::binary_search(span.operators, saved.op)) {
        continue;
      }
      return note(i, "'{}' writes to '{}', which '{}' has saved before",
                  step_.node(written_[s]).name, saved.call->key, regions_[i].name);
    }
  }

  [[nodiscard]] bool persists(StorageId id) const {
    return step_.storage(id).persistence == Persistence::persistent;
  }

  /// Those that lie in others first: a second run of the others has theirs in it.
  std::optional<StepGraph> with_second_runs() {
    const std::vector<CheckpointRegion> all = rewritten_regions();
    std::size_t deepest = 0;
    for (const std::size_t depth : depths_) deepest = std::max(deepest, depth);
    Result<StepGraph> again = step_;
    for (std::size_t depth = deepest + 1; depth-- > 0;) {
      std::vector<CheckpointRegion> of_depth;
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (depths_[i] == depth) of_depth.push_back(all[i]);
      }
      std::ranges::sort(of_depth, {},
                        [](const CheckpointRegion& region) { return region.operators.front(); });
      if (again && !of_depth.empty()) again = with_checkpoints(*std::move(again), of_depth);
    }
    if (again) return *std::move(again);
    note(0, "{}", again.error().front().message);
    return std::nullopt;
  }

  [[nodiscard]] std::vector<CheckpointRegion> rewritten_regions() const {
    std::vector<ScriptRegion> outer;
    std::vector<ModuleSpan> outer_spans;
    for (std::size_t i = 0; i < regions_.size(); ++i) {
      if (depths_[i] > 0) continue;
      outer.push_back(regions_[i]);
      outer_spans.push_back(spans_[i]);
    }
    auto inputs = entering_tensors(step_, modules_, outer, outer_spans);
    std::vector<CheckpointRegion> all;
    std::size_t next = 0;
    for (std::size_t i = 0; i < regions_.size(); ++i) {
      all.push_back({.operators = spans_[i].operators, .kept = {}, .inputs = {}});
      if (depths_[i] == 0) all.back().inputs = std::move(inputs[next++]);
    }
    return all;
  }

  const PytorchPlan& plan_;
  const PlanPlaces& places_;
  const StepGraph& step_;
  ScriptModules modules_;
  std::vector<ScriptRegion> regions_;
  std::vector<std::size_t> depths_;  // by region: in how many others it lies
  std::vector<ModuleSpan> spans_;
  std::vector<NodeId> made_, written_;  // by storage: its first and its last write in forward
  std::set<std::pair<std::size_t, OperatorId>> taken_;  // by depth
  Violations wrong_;
};

}  // namespace

CheckpointedModules find_checkpointed_modules(const PytorchPlan& plan, const PlanPlaces& places,
                                              const StepDocument& document) {
  return CheckRegions(plan, places, document).run();
}

}  // namespace stowage
