#include "estimator/check/rule_of_thumb.hpp"

#include <fmt/format.h>

#include "estimator/base/cure.hpp"

namespace stowage {

namespace {

Bytes bytes_of(const Shape& shape, DataType type, std::int64_t batch) {
  return Bytes(checked_multiply(element_count(shape).at(batch), element_size(type)));
}

}  // namespace

Result<RuleOfThumb> rule_of_thumb(const StepDocument& document, std::int64_t batch) {
  const StepGraph& graph = *document.graph;
  if (!document.result_bytes) {
    return failure("the step file does not say how large its layers' results are",
                   hint_of(Cure::no_rule_of_thumb));
  }
  const bool trains = graph.settings.mode == Mode::train;
  const std::int64_t with_gradients = trains ? 2 : 1;
  const std::int64_t with_cache = trains ? 3 : 1;
  try {
    RuleOfThumb rule;
    rule.activations = Bytes(document.result_bytes->at(batch)) * with_gradients;
    for (const Parameter& parameter : document.parameters) {
      if (parameter.is_buffer) continue;
      rule.parameters += bytes_of(parameter.type.shape, parameter.type.type, 1) *
                         (parameter.trainable ? with_cache : 1);
    }
    const std::size_t inputs =
        graph.inputs.size() / static_cast<std::size_t>(graph.settings.micro_batches);
    for (std::size_t i = 0; i < inputs; ++i) {
      rule.miscellaneous += bytes_of(graph.inputs[i].shape, graph.inputs[i].type, batch);
    }
    return rule;
  } catch (const ArithmeticOverflow& overflow) {
    return failure(fmt::format("the rule of thumb for model '{}' leaves 64 bits: {}", graph.model,
                               overflow.what()));
  }
}

}  // namespace stowage
