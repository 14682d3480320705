#include "planner/validate_pytorch/checkpointed_modules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "estimator/rewrite/checkpoints.hpp"
#include "planner/validate_pytorch/module_span.hpp"

namespace stowage {

namespace {

/// The first storage that the module changes though it was there before the module ran; none: a
/// second run finds what the first one found. Buffers are written by the first run alone.
StorageId changed_before(const StepGraph& step, const ModuleSpan& span) {
  std::set<StorageId> made;
  for (std::size_t n = span.first.index(); n <= span.last.index(); ++n) {
    const KernelNode& node = step.nodes[n];
    for (const TensorView& view : node.writes) {
      const Storage& storage = step.storage(view.storage);
      const bool reads =
          std::ranges::find(node.reads, view.storage, &TensorView::storage) != node.reads.end();
      const bool lasts = storage.persistence != Persistence::transient;
      if (lasts && storage.storage_class != StorageClass::buffer) return view.storage;
      if (!lasts && reads && !made.contains(view.storage)) return view.storage;
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

class CheckModules {
 public:
  CheckModules(const PytorchPlan& plan, const PlanPlaces& places, const StepGraph& step)
      : plan_(plan), places_(places), step_(step) {}

  CheckpointedModules run() && {
    for (std::size_t i = 0; i < plan_.checkpoint.size(); ++i) take(i);
    if (!plan_.checkpoint.empty() && !plan_.trains) {
      note(0, "an inference has no backward in which '{}' could run again", plan_.checkpoint[0]);
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
    wrong_.note([&] {
      return fmt::format("{}: {}", places_.at({"checkpoint", i, "module"}),
                         fmt::format(text, std::forward<Arguments>(arguments)...));
    });
  }

  void take(std::size_t i) {
    const std::string& module = plan_.checkpoint[i];
    ModuleSpan span = module_span(step_, module);
    if (!span.first.valid()) return note(i, "the step has no module '{}'", module);
    if (!span.is_in_one_piece) {
      return note(i, "'{}' does not run in one piece", module);
    }
    if (!saves_something(step_, span)) return note(i, "'{}' saves nothing", module);
    if (const StorageId changed = changed_before(step_, span); changed.valid()) {
      return note(i, "'{}' would change '{}' a second time", module, step_.storage(changed).name);
    }
    for (const OperatorId op : span.operators) {
      if (taken_.insert(op).second) continue;
      return note(i, "'{}' runs again as part of another module already", module);
    }
    regions_.push_back({.operators = std::move(span.operators)});
  }

  std::optional<StepGraph> with_second_runs() {
    if (regions_.empty()) return step_;
    std::ranges::sort(regions_, {},
                      [](const CheckpointRegion& region) { return region.operators.front(); });
    auto again = with_checkpoints(step_, regions_);
    if (again) return *std::move(again);
    note(0, "{}", again.error().front().message);
    return std::nullopt;
  }

  const PytorchPlan& plan_;
  const PlanPlaces& places_;
  const StepGraph& step_;
  std::set<OperatorId> taken_;
  std::vector<CheckpointRegion> regions_;
  Violations wrong_;
};

}  // namespace

CheckpointedModules find_checkpointed_modules(const PytorchPlan& plan, const PlanPlaces& places,
                                              const StepGraph& step) {
  return CheckModules(plan, places, step).run();
}

}  // namespace stowage
