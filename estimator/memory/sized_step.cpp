#include "estimator/memory/sized_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "estimator/memory/benchmark.hpp"
#include "estimator/memory/native_convolution.hpp"
#include "estimator/memory/partition.hpp"
#include "estimator/step/operator_lowering.hpp"

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

bool is_transposed(Kernel kernel) {
  return kernel == Kernel::transposed_convolution_forward ||
         kernel == Kernel::transposed_convolution_backward_data ||
         kernel == Kernel::transposed_convolution_backward_filter;
}

// Autograd's backward asks by the saved input and the filter, as forward does
// (cudnn_conv_suggest_memory_format in ATen/native/ConvUtils.h, which leaves float64 out).
TensorLayout layout_of(const ConvolutionCall& call) {
  const bool channels_last =
      call.x.type != DataType::float64 &&
      (is_channels_last(call.x) || is_channels_last(call.w) || is_channels_last(call.y));
  return channels_last ? TensorLayout::channels_last : TensorLayout::contiguous;
}

// So that questions whose answers cannot differ are one question.
ConvolutionSettings relevant(ConvolutionSettings settings, DataType type) {
  settings.tf32 = settings.tf32 || type != DataType::float32;
  return settings;
}

// PyTorch's settings are none of our own executor's business.
ConvolutionSettings settings_of(const StepGraph& graph, DataType type) {
  if (graph.settings.kernels == KernelSet::stowage) return {};
  return relevant(graph.settings.convolutions, type);
}

WorkspaceOrigin joined(WorkspaceOrigin all, WorkspaceOrigin one) {
  if (all == WorkspaceOrigin::none || all == one) return one;
  return one == WorkspaceOrigin::none ? all : WorkspaceOrigin::mixed;
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
          .groups = call.groups,
          .layout = layout_of(call),
          .settings = settings_of(graph, call.x.type)};
}

WorkspaceAnswer convolution_engines(const StepGraph& graph, const KernelNode& node,
                                    const ConvolutionQuery& query, WorkspaceSource& source) {
  if (graph.settings.kernels == KernelSet::pytorch &&
      is_native_in_pytorch(query, is_transposed(node.kernel))) {
    return {.engines = {{"pytorch depthwise", 0_B}}, .origin = WorkspaceOrigin::none};
  }
  return source.engines(query);
}

Result<SizedStep> size_storages(std::shared_ptr<const StepGraph> graph, std::int64_t batch) {
  if (batch < 1) return failure(fmt::format("batch {} is not at least 1", batch));
  SizedStep sized{.graph = graph, .batch = batch};
  std::int64_t total = 0;
  const std::vector<bool> shared = shared_out(*graph);
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
      const bool is_shared = shared[sized.storage_bytes.size()];
      sized.storage_bytes.push_back(is_shared ? share_of(Bytes(bytes), *graph) : Bytes(bytes));
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

namespace {

// Those that may win where all plans fit, then the others, which may win where some do not.
std::vector<Engine> winners_first(const std::vector<Engine>& plans) {
  std::vector<Engine> engines = benchmark_outcome(plans).winners;
  for (const Engine& plan : plans) {
    if (std::ranges::find(engines, plan.workspace, &Engine::workspace) == engines.end()) {
      engines.push_back(plan);
    }
  }
  return engines;
}

}  // namespace

Result<SizedStep> size_step(std::shared_ptr<const StepGraph> graph, std::int64_t batch,
                            WorkspaceSource& source) {
  Result<SizedStep> sized = size_storages(graph, batch);
  if (!sized) return sized;
  const bool benchmark = settings_of(*graph, DataType::float32).benchmark;
  if (benchmark) sized->benchmark.resize(graph->nodes.size());
  // A transposed convolution's question may be a plain one's too, of which PyTorch runs some
  // itself.
  std::map<std::pair<ConvolutionQuery, bool>, WorkspaceAnswer> asked;
  for (std::size_t i = 0; i < graph->nodes.size(); ++i) {
    const KernelNode& node = graph->nodes[i];
    if (node.convolution < 0) continue;
    std::pair key(convolution_query(*graph, node, batch), is_transposed(node.kernel));
    auto found = asked.find(key);
    if (found == asked.end()) {
      WorkspaceAnswer answer = convolution_engines(*graph, node, key.first, source);
      found = asked.emplace(std::move(key), std::move(answer)).first;
    }
    const WorkspaceAnswer& answer = found->second;
    sized->engines[i] = answer.engines;
    if (benchmark && !answer.benchmark.empty()) {
      sized->engines[i] = winners_first(answer.benchmark);
      sized->benchmark[i] = answer.benchmark;
    }
    sized->workspace_origin = joined(sized->workspace_origin, answer.origin);
  }
  return sized;
}

}  // namespace stowage
