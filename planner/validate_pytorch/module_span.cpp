#include "planner/validate_pytorch/module_span.hpp"

#include <algorithm>

namespace stowage {

ModuleSpan module_span(const StepGraph& step, const ScriptModules& modules,
                       const ScriptRegion& region) {
  ModuleSpan span;
  for (std::size_t n = 0; n < step.nodes.size(); ++n) {
    const KernelNode& node = step.nodes[n];
    if (!runs_in_forward(node)) continue;
    if (!node.op.valid() || !modules.covers(region, step.layer(node.op))) continue;
    if (!span.first.valid()) span.first = NodeId::of(n);
    // Only nodes of forward and of the loss stand between two of these.
    if (span.last.valid() && span.last.index() + 1 != n) span.is_in_one_piece = false;
    span.last = NodeId::of(n);
    span.operators.push_back(node.op);
  }
  std::ranges::sort(span.operators);
  span.operators.erase(std::unique(span.operators.begin(), span.operators.end()),
                       span.operators.end());
  return span;
}

}  // namespace stowage
