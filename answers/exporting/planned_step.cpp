#include "answers/exporting/planned_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "answers/subject/asked_model.hpp"
#include "estimator/optimizer/optimizer_row.hpp"
#include "estimator/optimizer/optimizer_word.hpp"
#include "planner/plan/two_sides.hpp"

namespace stowage {

namespace {

bool is_activation(const Plan& plan, const Transfer& transfer) {
  const StorageClass kind = plan.storage(transfer.storage).storage_class;
  return kind == StorageClass::activation || kind == StorageClass::saved_auxiliary;
}

bool has_moved_activations(const Plan& plan) {
  return std::ranges::any_of(plan.transfers,
                             [&](const Transfer& t) { return is_activation(plan, t); });
}

/// What of the plan a program of settings cannot carry out, a line each.
std::vector<std::string> unexpressed_decisions(const Plan& plan, bool moves_activations) {
  std::vector<std::string> lines;
  std::size_t copies = 0;
  Bytes moved;
  for (const Transfer& transfer : plan.transfers) {
    if (moves_activations && is_activation(plan, transfer)) continue;
    ++copies;
    moved += plan.bytes(transfer.storage);
  }
  if (copies > 0) {
    lines.push_back(
        fmt::format("{} copies of {} between the GPU and the host", copies, format_bytes(moved)));
  }
  if (moves_activations && has_moved_activations(plan)) {
    lines.emplace_back(
        "which saved tensors leave the GPU, and when: `offload_activations` moves all of them");
  }
  const auto on_cpu = std::ranges::count_if(
      plan.nodes, [&](const PlannedNode& node) { return device_of(plan, node) == Device::cpu; });
  if (on_cpu > 0) lines.push_back(fmt::format("{} kernels on the CPU", on_cpu));
  const LoweringSettings& settings = plan.step.graph->settings;
  if (!settings.recomputed.empty()) {
    lines.push_back(fmt::format("{} values that backward makes again", settings.recomputed.size()));
  }
  if (!settings.order.empty()) lines.emplace_back("the order of the kernels");
  return lines;
}

}  // namespace

Result<PlannedStep> set_up_planned_step(const Plan& plan, bool moves_activations) {
  if (plan.inputs.model_text.empty()) {
    return failure("the plan was made of a step, and holds no description of its model",
                   "name the model, with the settings that the step has");
  }
  const LoweringSettings& settings = plan.step.graph->settings;
  ModelQuestion model{.source = plan.inputs.model_name, .options = plan.inputs.model_options};
  if (moves_activations && has_moved_activations(plan)) {
    model.options.fine_tuning.offload_activations = "all";
  }
  const auto text = std::make_shared<const SourceText>(
      SourceText{plan.inputs.model_name, plan.inputs.model_text});
  auto asked = load_asked_model({.source = text}, model);
  if (!asked) return tl::unexpected(std::move(asked.error()));
  StepQuestion step{.model = std::move(model), .process = {.runtime = Runtime::pytorch}};
  step.wishes.mode = settings.mode;
  step.wishes.layout = settings.step.layout;
  if (settings.micro_batches > 1) step.wishes.accumulation = settings.micro_batches;
  if (settings.mode == Mode::train) {
    step.wishes.optimizer = optimizer_name(settings.optimizer);
    const OptimizerSettings& described = asked->graph.optimizer;
    if (!step.wishes.optimizer && described.name != settings.optimizer.name) {
      return failure(fmt::format("the plan's optimizer, {}, has no name with these settings",
                                 optimizer_text(settings.optimizer)));
    }
  }
  const StepSource source{.model = std::make_shared<const AskedModel>(*std::move(asked)),
                          .document = nullptr};
  auto setup = set_up_step(source, step, {.card = plan.inputs.card}, {});
  if (!setup) return tl::unexpected(std::move(setup.error()));
  CheckQuestion question{.step = std::move(step), .batch = plan.step.batch};
  return PlannedStep{.question = std::move(question),
                     .setup = *std::move(setup),
                     .unexpressed = unexpressed_decisions(plan, moves_activations)};
}

}  // namespace stowage
