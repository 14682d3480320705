// A step as if it had been recorded at one batch: its sizes are plain numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>

#include "estimator/document/step_document.hpp"

namespace stowage::testing {

inline void record(Affine& size, std::int64_t batch) { size = size.at(batch); }
inline void record(Shape& shape, std::int64_t batch) {
  for (std::size_t i = 0; i < shape.size(); ++i) record(shape.at(i), batch);
}
inline void record(TensorType& type, std::int64_t batch) { record(type.shape, batch); }
inline void record(TensorView& view, std::int64_t batch) {
  record(view.shape, batch);
  record(view.strides, batch);
  record(view.offset, batch);
}
inline void record(KernelNode& node, std::int64_t batch);
template <typename T>
void record(std::vector<T>& all, std::int64_t batch) {
  for (T& one : all) record(one, batch);
}

inline void record(KernelNode& node, std::int64_t batch) {
  record(node.reads, batch);
  record(node.writes, batch);
  record(node.flops, batch);
  Attributes attributes;
  for (auto [name, value] : node.attributes.entries()) {
    if (auto* shape = std::get_if<Shape>(&value)) record(*shape, batch);
    attributes.set(name, value);
  }
  node.attributes = attributes;
}

inline std::shared_ptr<const StepGraph> recorded(StepGraph graph, std::int64_t batch) {
  for (Storage& storage : graph.storages) record(storage.bytes, batch);
  record(graph.nodes, batch);
  for (ConvolutionCall& call : graph.convolutions) {
    for (TensorType* type : {&call.x, &call.w, &call.y}) record(*type, batch);
  }
  record(graph.inputs, batch);
  record(graph.losses, batch);
  record(graph.gradients, batch);
  record(graph.output, batch);
  for (GradientArrival& arrival : graph.micro_batch.arrivals) record(arrival.gradient, batch);
  return std::make_shared<const StepGraph>(std::move(graph));
}

/// Without costs of layers and evaluation.
inline StepDocument recorded(StepDocument document, std::int64_t batch) {
  document.graph = recorded(StepGraph(*document.graph), batch);
  document.evaluation = nullptr;
  document.batch = batch;
  document.fixed_batch = true;
  for (Layer& layer : document.layers) {
    record(layer.output, batch);
    layer.flops = layer.saved_bytes = 0;
  }
  document.has_costs = false;
  if (document.result_bytes) record(*document.result_bytes, batch);
  return document;
}

}  // namespace stowage::testing
