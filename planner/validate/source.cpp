// Compares the plan's step with what the description in the plan lowers to in this version.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "estimator/adapt/adapt.hpp"
#include "estimator/document/step_hash.hpp"
#include "estimator/rewrite/lower_step.hpp"
#include "planner/validate/checks.hpp"

namespace stowage {

namespace {

// Limits the work of lowering by the length of the plan: a plan of a few lines must not be able to
// demand a `repeat:` times a number of micro-batches. Views are no kernel calls, so a step has more
// operators than a plan has nodes, but not many times more.
constexpr std::int64_t most_operators_a_node = 16;
constexpr std::int64_t operators_of_any_plan = 1000;

Check refused(std::string detail) { return {"source", false, std::move(detail)}; }
Check refused(std::string_view what, const Diagnostics& diagnostics) {
  return refused(fmt::format(
      "{}: {}", what, diagnostics.empty() ? "no reason given" : diagnostics.front().message));
}

void compare_nodes(const StepGraph& planned, const StepGraph& lowered, Violations& wrong) {
  if (planned.nodes.size() != lowered.nodes.size()) {
    wrong.note([&] {
      return fmt::format("the plan has {} nodes, the description gives {}", planned.nodes.size(),
                         lowered.nodes.size());
    });
  }
  for (std::size_t i = 0; i < std::min(planned.nodes.size(), lowered.nodes.size()); ++i) {
    if (planned.nodes[i].name == lowered.nodes[i].name) continue;
    wrong.note([&] {
      return fmt::format("step {} is '{}' in the plan, '{}' by the description", i,
                         planned.nodes[i].name, lowered.nodes[i].name);
    });
  }
}

void compare_storages(const SizedStep& planned, const SizedStep& lowered, Violations& wrong) {
  const auto& ours = planned.graph->storages;
  const auto& theirs = lowered.graph->storages;
  if (ours.size() != theirs.size()) {
    wrong.note([&] {
      return fmt::format("the plan has {} storages, the description gives {}", ours.size(),
                         theirs.size());
    });
  }
  for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
    if (ours[i].name == theirs[i].name && ours[i].storage_class == theirs[i].storage_class &&
        planned.storage_bytes[i] == lowered.storage_bytes[i]) {
      continue;
    }
    wrong.note([&] {
      return fmt::format(
          "storage {} is '{}' ({}, {} bytes) in the plan, '{}' ({}, {} bytes) by the description",
          i, ours[i].name, to_string(ours[i].storage_class), planned.storage_bytes[i].count(),
          theirs[i].name, to_string(theirs[i].storage_class), lowered.storage_bytes[i].count());
    });
  }
}

}  // namespace

Check compare_with_source(const Plan& plan) {
  const PlanInputs& inputs = plan.inputs;
  if (inputs.model_text.empty()) {
    return {"source not compared", true, "the plan was made from a step, and holds no description"};
  }
  const auto source =
      std::make_shared<const SourceText>(SourceText{inputs.model_name, inputs.model_text});
  const Result<ModelGraph> model = load_adapted(source, inputs.model_options);
  if (!model) return refused("the description does not load", model.error());
  const LoweringSettings& settings = plan.step.graph->settings;
  const std::int64_t most_operators =
      operators_of_any_plan + most_operators_a_node * static_cast<std::int64_t>(plan.nodes.size());
  if (static_cast<std::int64_t>(model->operators.size()) >
      most_operators / settings.micro_batches) {
    return refused(fmt::format("{} micro-batches of {} operators are no step of {} nodes",
                               settings.micro_batches, model->operators.size(), plan.nodes.size()));
  }
  Result<StepGraph> graph = lower_step(*model, settings);
  if (!graph) return refused("the description cannot be lowered", graph.error());
  const Result<SizedStep> step =
      size_storages(std::make_shared<const StepGraph>(*std::move(graph)), plan.step.batch);
  if (!step) return refused("the description cannot be sized", step.error());
  Violations wrong;
  compare_nodes(*plan.step.graph, *step->graph, wrong);
  compare_storages(plan.step, *step, wrong);
  if (wrong.count == 0 && step_hash(*step) != step_hash(plan.step)) {
    wrong.note([] { return "names and sizes are the same, but arguments or attributes are not"; });
  }
  return verdict("source", wrong,
                 fmt::format("'{}', hash {}, lowers to the plan's step", inputs.model_name,
                             inputs.model_hash));
}

}  // namespace stowage
