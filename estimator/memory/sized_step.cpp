#include "estimator/memory/sized_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace stowage {

namespace {

constexpr std::int64_t largest_size = std::int64_t{1} << 62;

double bytes_of(const TensorView& view, std::int64_t batch) {
  double count = static_cast<double>(element_size(view.type));
  for (const Affine& dimension : view.shape) count *= static_cast<double>(dimension.at(batch));
  return count;
}

tl::unexpected<Diagnostics> too_large(const Storage& storage, std::int64_t batch) {
  return failure(fmt::format("batch {} makes '{}' ({}) larger than 4 EiB", batch, storage.name,
                             to_string(storage.storage_class)),
                 "give a smaller --batch");
}

}  // namespace

Bytes SizedStep::first_workspace(NodeId id) const {
  const std::vector<Engine>& choices = engines[id.index()];
  return choices.empty() ? Bytes() : choices.front().workspace;
}

Bytes SizedStep::least_workspace(NodeId id) const {
  const std::vector<Engine>& choices = engines[id.index()];
  if (choices.empty()) return Bytes();
  return std::min_element(
             choices.begin(), choices.end(),
             [](const Engine& a, const Engine& b) { return a.workspace < b.workspace; })
      ->workspace;
}

ConvolutionQuery convolution_query(const StepGraph& graph, const KernelNode& node,
                                   std::int64_t batch) {
  const ConvolutionCall& call = graph.convolutions[static_cast<std::size_t>(node.convolution)];
  return {.direction = call.direction,
          .type = call.x.type,
          .x = at_batch(call.x.shape, batch),
          .w = at_batch(call.w.shape, batch),
          .y = at_batch(call.y.shape, batch),
          .stride = call.stride,
          .padding = call.padding,
          .dilation = call.dilation,
          .groups = call.groups};
}

Result<SizedStep> size_storages(std::shared_ptr<const StepGraph> graph, std::int64_t batch) {
  if (batch < 1) return failure(fmt::format("batch {} is not at least 1", batch));
  SizedStep sized{.graph = graph, .batch = batch};
  std::int64_t total = 0;
  for (const Storage& storage : graph->storages) {
    try {
      const std::int64_t bytes = storage.bytes.at(batch);
      if (bytes < 0) {
        return failure(fmt::format("batch {} makes '{}' ({}) smaller than nothing", batch,
                                   storage.name, to_string(storage.storage_class)),
                       "give a larger --batch");
      }
      total = checked_add(total, bytes);
      if (total > largest_size) return too_large(storage, batch);
      sized.storage_bytes.emplace_back(bytes);
    } catch (const ArithmeticOverflow&) {
      return too_large(storage, batch);
    }
  }
  for (const KernelNode& node : graph->nodes) {
    sized.flops.push_back(static_cast<double>(node.flops.constant) +
                          static_cast<double>(node.flops.slope) * static_cast<double>(batch));
    double moved = 0;
    for (const TensorView& view : node.reads) moved += bytes_of(view, batch);
    for (const TensorView& view : node.writes) moved += bytes_of(view, batch);
    sized.bytes_moved.push_back(moved);
  }
  sized.engines.resize(graph->nodes.size());
  return sized;
}

Result<SizedStep> size_step(std::shared_ptr<const StepGraph> graph, std::int64_t batch,
                            WorkspaceSource& source) {
  Result<SizedStep> sized = size_storages(graph, batch);
  if (!sized) return sized;
  std::map<ConvolutionQuery, WorkspaceAnswer> asked;
  for (std::size_t i = 0; i < graph->nodes.size(); ++i) {
    if (graph->nodes[i].convolution < 0) continue;
    ConvolutionQuery query = convolution_query(*graph, graph->nodes[i], batch);
    auto found = asked.find(query);
    if (found == asked.end()) {
      WorkspaceAnswer answer = source.engines(query);
      found = asked.emplace(std::move(query), std::move(answer)).first;
    }
    const WorkspaceOrigin origin = found->second.origin;
    sized->engines[i] = found->second.engines;
    if (sized->workspace_origin == WorkspaceOrigin::none) sized->workspace_origin = origin;
    if (sized->workspace_origin != origin) sized->workspace_origin = WorkspaceOrigin::mixed;
  }
  return sized;
}

}  // namespace stowage
