// Steps of ATen calls as a recorder writes them, for tests.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "estimator/recorded/complete_step.hpp"
#include "estimator/step/operator_lowering.hpp"

namespace stowage::testing {

/// An inference of the calls that are added; the first tensor is its input, the last result its
/// output.
class RawStep {
 public:
  RawStep() {
    document_.written_by = "stowage.record 0.1.0, torch 2.15.0";
    graph_.model = "net";
    graph_.settings = {.kernels = KernelSet::pytorch, .mode = Mode::inference};
    graph_.origins = {{.layer = "layer", .place = "net.py:1"}};
  }

  StepGraph& graph() { return graph_; }

  /// A tensor that is there before the step.
  TensorView given(const std::string& name, const Shape& shape, DataType type = DataType::float32) {
    return added(name, shape, type, Persistence::persistent);
  }
  TensorView made(const std::string& name, const Shape& shape, DataType type = DataType::float32) {
    return added(name, shape, type, Persistence::transient);
  }

  /// A call named after its kernel: "mm" of "aten::mm".
  void call(const std::string& kernel, const std::string& arguments, std::vector<TensorView> reads,
            const std::string& results, std::vector<TensorView> writes,
            Attributes attributes = {}) {
    attributes.set("arguments", arguments);
    attributes.set("results", results);
    const std::string name = kernel.substr(kernel.find("::") + 2);
    graph_.nodes.push_back({.name = name,
                            .kernel = Kernel::foreign,
                            .phase = Phase::forward,
                            .op = OperatorId{0},
                            .reads = std::move(reads),
                            .writes = std::move(writes),
                            .attributes = std::move(attributes),
                            .foreign_kernel = Shared<std::string>(kernel)});
  }

  [[nodiscard]] StepDocument document() const {
    StepDocument document = document_;
    StepGraph graph = graph_;
    graph.output = graph.nodes.back().writes.back();
    document.graph = std::make_shared<const StepGraph>(std::move(graph));
    return document;
  }

 private:
  TensorView added(const std::string& name, const Shape& shape, DataType type,
                   Persistence persistence) {
    TensorView view = contiguous_view(StorageId::of(graph_.storages.size()), shape, type);
    graph_.storages.push_back(
        {.name = name, .persistence = persistence, .bytes = byte_count(view)});
    return view;
  }

  StepDocument document_;
  StepGraph graph_;
};

inline std::shared_ptr<const StepGraph> completed(const RawStep& step) {
  auto whole = complete_step(step.document());
  if (!whole) throw std::runtime_error(render(whole.error()));
  return whole->graph;
}

/// Of the error, or "".
inline std::string refusal_of(const RawStep& step) {
  const auto whole = complete_step(step.document());
  return whole ? "" : whole.error().front().message;
}

}  // namespace stowage::testing
