#include "answers/sizing/step_summary.hpp"

namespace stowage {

StepSummary summarise_step(const StepDocument& document) {
  const StepGraph& graph = *document.graph;
  return {.model = graph.model,
          .lowering = graph.settings,
          .precision = document.precision,
          .accumulation = document.accumulation,
          .seq = document.seq,
          .missing_update = missing_update(document),
          .loop = training_loop(document)};
}

}  // namespace stowage
