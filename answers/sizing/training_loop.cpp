#include "answers/sizing/training_loop.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "estimator/base/kernel_set.hpp"
#include "estimator/base/name_match.hpp"

namespace stowage {

namespace {

constexpr std::size_t most_named = 3;

}  // namespace

std::optional<TrainingLoop> training_loop(const StepDocument& document) {
  const StepGraph& graph = *document.graph;
  const LoweringSettings& settings = graph.settings;
  if (settings.mode != Mode::train || !traits(settings.kernels).frees_by_reference) {
    return std::nullopt;
  }
  TrainingLoop loop{.is_recorded = was_recorded(document),
                    .zero_grad = settings.step.zero_grad,
                    .updates_in_backward = settings.early_updates};
  if (loop.is_recorded) return loop;
  for (const ScriptVariable& variable : graph.micro_batch.variables) {
    if (variable.kind != ScriptVariable::Kind::result) continue;
    if (loop.kept.empty()) {
      loop.replaced_after_loss = graph.node(variable.assigned_after).phase == Phase::loss;
    }
    const std::string& name = graph.storage(variable.storage).name;
    if (std::ranges::find(loop.kept, name) == loop.kept.end()) loop.kept.push_back(name);
  }
  return loop;
}

std::string describe_loop(const TrainingLoop& loop) {
  if (loop.is_recorded) return "as it was recorded";
  std::string text =
      loop.updates_in_backward ? "each gradient is dropped once its parameter is updated"
      : loop.zero_grad == ZeroGrad::to_none
          ? "zero_grad drops the gradients before forward"
          : "zero_grad fills the gradients with zeros, so that they are there during forward";
  if (loop.kept.empty()) return text + "; no result stays beyond its step";
  return fmt::format("{}; {} {} until the next step's {} been made", text,
                     listed(loop.kept, most_named), loop.kept.size() == 1 ? "stays" : "stay",
                     loop.kept.size() == 1 ? "has" : "have");
}

}  // namespace stowage
