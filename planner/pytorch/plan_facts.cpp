#include "planner/pytorch/plan_facts.hpp"

#include <algorithm>

namespace stowage {

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
