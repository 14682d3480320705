#include "planner/pytorch/plan_facts.hpp"

#include <algorithm>
#include <string_view>

#include "estimator/optimizer/optimizer_row.hpp"

namespace stowage {

std::string optimizer_word(const OptimizerSettings& settings) {
  for (const std::string_view name : optimizer_names()) {
    const auto named = named_optimizer(name);
    if (named && named->name == settings.name && (named->momentum > 0) == (settings.momentum > 0) &&
        named->nesterov == settings.nesterov && named->amsgrad == settings.amsgrad &&
        named->centered == settings.centered) {
      return std::string(name);
    }
  }
  return settings.name;
}

InferenceChunks chunks_of(const StepGraph& step, std::int64_t parts) {
  InferenceChunks chunks{.parts = parts, .inputs = {}, .output = step.output.shape};
  const auto is_read = [&](const TensorView& input) {
    return std::ranges::any_of(step.nodes, [&](const KernelNode& node) {
      return std::ranges::find(node.reads, input.storage, &TensorView::storage) != node.reads.end();
    });
  };
  for (const TensorView& input : step.inputs) {
    if (is_read(input)) chunks.inputs.push_back(input.shape);
  }
  return chunks;
}

}  // namespace stowage
