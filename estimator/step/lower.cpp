#include "estimator/step/lower.hpp"

#include <fmt/format.h>

#include "estimator/base/affine.hpp"
#include "estimator/base/bytes.hpp"
#include "estimator/catalogue/operator_row.hpp"
#include "estimator/step/step_builder.hpp"

namespace stowage {

Result<StepGraph> lower(const ModelGraph& model, const LoweringSettings& settings) {
  if (settings.mode == Mode::train && !model.loss.valid()) {
    return failure(fmt::format("model '{}' has no loss, so that it cannot be trained", model.name),
                   "add a `loss:` to the description, or use --mode inference");
  }
  if (settings.micro_batches < 1) return failure("a step has at least one micro-batch");
  Diagnostics diagnostics;
  for (const Operator& op : model.operators) {
    if (op.row->lowering[static_cast<std::size_t>(settings.kernels)].forward != nullptr) continue;
    diagnostics.push_back(
        {.message = fmt::format("the kernel set '{}' does not run {} (layer '{}')",
                                to_string(settings.kernels), op.row->name, op.name),
         .span = op.span});
  }
  if (!diagnostics.empty()) return tl::unexpected(std::move(diagnostics));
  try {
    StepGraph graph = StepBuilder(model, settings).build();
    if (graph.nodes.empty()) {
      return failure(
          fmt::format("model '{}' computes nothing in {}: all its layers are views of "
                      "their inputs",
                      model.name, to_string(settings.mode)));
    }
    return graph;
  } catch (const ArithmeticOverflow& overflow) {
    return failure(
        fmt::format("model '{}' has a size past 64 bits: {}", model.name, overflow.what()));
  } catch (const NotAffine& product) {
    return failure(fmt::format("model '{}' has a size that grows faster than the batch: {}",
                               model.name, product.what()));
  }
}

}  // namespace stowage
