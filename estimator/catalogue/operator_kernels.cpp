#include "estimator/catalogue/operator_kernels.hpp"

#include <algorithm>
#include <cassert>
#include <memory>

#include "estimator/catalogue/operator_example.hpp"
#include "estimator/model/load_model.hpp"
#include "estimator/step/lower.hpp"

namespace stowage {

namespace {

CallTime call_time(Phase phase, Mode mode) {
  if (phase == Phase::backward) return CallTime::backward;
  return mode == Mode::inference ? CallTime::inference : CallTime::forward;
}

void add_calls(const ModelGraph& model, const OperatorRow& row, Mode mode,
               std::vector<OperatorKernel>& kernels) {
  const auto graph = lower(model, {.mode = mode});
  assert(graph.has_value());
  for (const KernelNode& node : graph->nodes) {
    if (!node.op.valid() || model.op(node.op).row != &row) continue;
    const OperatorKernel call{call_time(node.phase, mode), node.kernel};
    // An inference's calls are those of training's forward, or they are its own.
    const bool known =
        std::any_of(kernels.begin(), kernels.end(), [&](const OperatorKernel& other) {
          return other == call || (call.time == CallTime::inference && other.kernel == call.kernel);
        });
    if (!known) kernels.push_back(call);
  }
}

}  // namespace

std::string_view to_string(CallTime time) {
  switch (time) {
    case CallTime::forward:
      return "forward";
    case CallTime::backward:
      return "backward";
    case CallTime::inference:
      return "inference";
  }
  return "";
}

std::vector<OperatorKernel> operator_kernels(const OperatorRow& row) {
  const auto model = load_model(std::make_shared<const SourceText>(
      SourceText{std::string(row.name), example_description(row)}));
  assert(model.has_value());
  std::vector<OperatorKernel> kernels;
  for (const Mode mode : {Mode::train, Mode::inference}) add_calls(*model, row, mode, kernels);
  return kernels;
}

}  // namespace stowage
