#include "planner/validate_pytorch/recount.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "estimator/document/step_hash.hpp"
#include "estimator/optimizer/optimizer_word.hpp"
#include "planner/validate/checks.hpp"
#include "planner/validate_pytorch/checkpointed_modules.hpp"
#include "planner/validate_pytorch/host_stays.hpp"
#include "planner/validate_pytorch/moved_updates.hpp"
#include "planner/validate_pytorch/plan_places.hpp"
#include "planner/validate_pytorch/saved_calls.hpp"
#include "planner/validate_pytorch/script_regions.hpp"
#include "planner/validate_pytorch/streamed_modules.hpp"
#include "planner/validate_pytorch/totals_of_plan.hpp"

namespace stowage {

namespace {

constexpr auto recount_names = std::to_array<std::string_view>(
    {"step hash", "description", "checkpointed modules", "streamed parameters", "saved tensors",
     "freed memory", "order of copies", "parts", "update", "copied bytes", "pinned memory",
     "allocator", "card", "step time", "bounds"});

// Second runs within second runs are the estimator's, which knows one level of them.
constexpr std::size_t most_nested = 1;

bool is_read(const StepGraph& step, StorageId storage) {
  return std::ranges::any_of(step.nodes, [&](const KernelNode& node) {
    return std::ranges::find(node.reads, storage, &TensorView::storage) != node.reads.end();
  });
}

class Recount {
 public:
  Recount(const PytorchPlan& plan, SourceTextPtr source, const StepOfPlan& step,
          WorkspaceSource& workspaces)
      : plan_(plan), places_(std::move(source)), step_(step), workspaces_(workspaces) {}

  PlanValidation run() && {
    if (check_step()) check_decisions();
    list_unchecked();
    return {std::move(checks_)};
  }

 private:
  [[nodiscard]] const StepGraph& graph() const { return *step_.document.graph; }

  void add(Check check) { checks_.push_back(std::move(check)); }
  [[nodiscard]] bool all_passed() const { return std::ranges::all_of(checks_, &Check::passed); }

  /// Whether the plan is of this step.
  bool check_step() {
    const auto sized = size_step(step_.document.graph, step_.batch, workspaces_);
    if (!sized) {
      add({"step hash", false, sized.error().front().message});
      return false;
    }
    const std::string hash = step_hash(*sized);
    Violations wrong;
    if (hash != plan_.step_hash) {
      wrong.note([&] {
        return fmt::format("{}: the plan is of another step than '{}' has now: {}, not {}",
                           places_.at({"step"}), plan_.question ? plan_.question->model : "", hash,
                           plan_.step_hash);
      });
    }
    add(verdict("step hash", wrong, hash));
    if (wrong.count > 0) return false;
    check_description();
    return true;
  }

  void check_description() {
    Violations wrong;
    const StepDocument& document = step_.document;
    const auto compare = [&](std::initializer_list<PlanPlaces::PathPart> path,
                             std::string_view what, const auto& is, const auto& said) {
      if (is == said) return;
      wrong.note([&] {
        return fmt::format("{}: the step's {} is {}, not {}", places_.at(path), what, is, said);
      });
    };
    // Of a step of several passes the first one's tensors have keys.
    const auto has_key = [](const SavedTensor& saved) { return saved.call.has_value(); };
    const bool is_recorded = was_recorded(document) &&
                             (graph().saved.empty() || std::ranges::any_of(graph().saved, has_key));
    const auto whose = [](bool recorded) { return recorded ? "recorded" : "described"; };
    const auto mode = [](bool trains) { return trains ? "training" : "inference"; };
    compare({"model"}, "model", graph().model, plan_.model);
    compare({"names"}, "names", std::string_view(whose(is_recorded)),
            std::string_view(whose(plan_.names_are_recorded)));
    compare({"mode"}, "mode", std::string_view(mode(graph().settings.mode == Mode::train)),
            std::string_view(mode(plan_.trains)));
    compare({"precision"}, "precision", std::string(to_string(document.precision)),
            plan_.precision);
    compare({"optimizer"}, "optimizer", optimizer_word(graph().settings.optimizer),
            plan_.optimizer);
    compare({"passes", "saved"}, "number of saved tensors", std::ssize(graph().saved), plan_.saved);
    compare({"gpu", "name"}, "card", step_.card.name, plan_.card);
    compare({"pytorch"}, "PyTorch", to_string(step_.process.stack.pytorch), plan_.pytorch);
    if (step_.process.allocator.expandable_segments && !plan_.expandable_segments) {
      wrong.note([&] {
        return fmt::format("{}: the plan's question has expandable segments, and the plan has none",
                           places_.at({}));
      });
    }
    add(verdict("description", wrong,
                fmt::format("{}, batch {}, on {}", plan_.model, step_.batch, plan_.card)));
  }

  void check_decisions() {
    CheckpointedModules modules = find_checkpointed_modules(plan_, places_, step_.document);
    add(std::move(modules.check));
    if (!modules.step) return;
    FoundDecisions found{
        .step = *std::move(modules.step), .stays = {}, .pieces = {}, .updates = {}};
    StreamedModules streams = find_streamed_modules(plan_, places_, step_.document, found.step);
    add(std::move(streams.check));
    found.pieces = std::move(streams.pieces);
    std::set<StorageId> streamed;
    for (const PieceOfModule& piece : found.pieces) {
      streamed.insert(piece.parameters.begin(), piece.parameters.end());
    }
    const SavedCalls calls(found.step, streamed);
    HostStays stays = find_host_stays(plan_, places_, found.step, calls);
    add(std::move(stays.tensors));
    add(std::move(stays.owners));
    add(std::move(stays.order));
    found.stays = std::move(stays.stays);
    check_parts();
    PlannedUpdates updates = find_moved_updates(plan_, places_, step_.document, found.step);
    add(std::move(updates.check));
    found.updates = std::move(updates.moved);
    if (!all_passed()) return;
    auto totals = count_totals(plan_, places_, step_, found, workspaces_);
    if (!totals) return add({"copied bytes", false, totals.error().front().message});
    std::ranges::move(*totals, std::back_inserter(checks_));
  }

  void check_parts() {
    Violations wrong;
    const auto note = [&](std::initializer_list<PlanPlaces::PathPart> path, std::string text) {
      wrong.note([&] { return fmt::format("{}: {}", places_.at(path), text); });
    };
    if (plan_.micro_batches > 1 && !plan_.trains) {
      note({"micro_batches"}, "an inference has no micro-batches");
    }
    if (plan_.micro_batches > 1 && step_.document.fixed_batch) {
      note({"micro_batches"}, "the step was recorded at one batch");
    }
    if (plan_.chunks) check_chunks(*plan_.chunks, note);
    const std::int64_t parts = plan_.chunks ? plan_.chunks->parts : plan_.micro_batches;
    add(verdict("parts", wrong,
                parts == 1 ? "the whole batch at once"
                           : fmt::format("{} of {} samples", parts, step_.batch / parts)));
  }

  template <typename Note>
  void check_chunks(const InferenceChunks& chunks, const Note& note) const {
    if (plan_.trains) note({"chunks"}, "a training step does not run in parts of an inference");
    if (step_.document.fixed_batch) note({"chunks"}, "the step was recorded at one batch");
    if (chunks.output != graph().output.shape) {
      note({"chunks", "output"},
           fmt::format("the output has the shape {}, not {}", to_string(graph().output.shape),
                       to_string(chunks.output)));
    }
    const auto may_be_cut = [](const Shape& shape) {
      const auto follows = [](const Affine& size) { return !size.is_constant(); };
      const bool is_whole = std::ranges::none_of(shape, follows);
      return is_whole || (shape.front() == batch_symbol &&
                          std::none_of(shape.begin() + 1, shape.end(), follows));
    };
    std::vector<Shape> inputs;
    for (const TensorView& input : graph().inputs) {
      if (is_read(graph(), input.storage)) inputs.push_back(input.shape);
    }
    if (inputs.size() != chunks.inputs.size()) {
      note({"chunks", "inputs"},
           fmt::format("the model reads {} inputs, not {}", inputs.size(), chunks.inputs.size()));
    }
    for (std::size_t i = 0; i < std::min(inputs.size(), chunks.inputs.size()); ++i) {
      if (inputs[i] != chunks.inputs[i]) {
        note({"chunks", "inputs", i},
             fmt::format("the input has the shape {}, not {}", to_string(inputs[i]),
                         to_string(chunks.inputs[i])));
      } else if (!may_be_cut(inputs[i])) {
        note({"chunks", "inputs", i}, "the batch is not the input's first axis");
      }
    }
    if (graph().output.shape.empty() || graph().output.shape.front() != batch_symbol) {
      note({"chunks", "output"}, "the batch is not the output's first axis");
    }
    for (const KernelNode& node : graph().nodes) {
      for (const TensorView& view : node.writes) {
        const Storage& storage = graph().storage(view.storage);
        if (storage.persistence == Persistence::transient) continue;
        note({"chunks"}, fmt::format("every part would change '{}'", storage.name));
      }
    }
  }

  void list_unchecked() {
    const auto failed = std::ranges::find(checks_, false, &Check::passed);
    const std::string culprit = failed == checks_.end() ? std::string() : failed->name;
    for (const std::string_view name : recount_names) {
      if (std::ranges::find(checks_, name, &Check::name) != checks_.end()) continue;
      add({std::string(name), false, fmt::format("not checked: '{}' failed", culprit)});
    }
  }

  const PytorchPlan& plan_;
  PlanPlaces places_;
  const StepOfPlan& step_;
  WorkspaceSource& workspaces_;
  std::vector<Check> checks_;
};

}  // namespace

std::optional<std::string> unknown_to_recount(const PytorchPlan& plan,
                                              const std::vector<RecordedModule>& modules) {
  std::vector<ScriptRegion> regions;
  for (const std::string& name : plan.checkpoint) regions.push_back(region_named(name));
  const std::vector<std::size_t> depths = ScriptModules(modules).nesting_depths(regions);
  const auto deep =
      std::ranges::find_if(depths, [](std::size_t depth) { return depth > most_nested; });
  if (deep == depths.end()) return std::nullopt;
  return fmt::format("'{}', which runs again within {} others",
                     regions[static_cast<std::size_t>(deep - depths.begin())].name, *deep);
}

PlanValidation recount_pytorch_plan(const PytorchPlan& plan, SourceTextPtr source,
                                    const StepOfPlan& step, WorkspaceSource& workspaces) {
  return Recount(plan, std::move(source), step, workspaces).run();
}

}  // namespace stowage
