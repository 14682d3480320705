#include "estimator/memory/sized_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>
#include <utility>

#include "estimator/base/cure.hpp"
#include "estimator/base/largest_memory.hpp"
#include "estimator/memory/partition.hpp"
#include "estimator/memory/products_by_rows.hpp"
#include "estimator/step/gathered_arguments.hpp"
#include "estimator/workspace/attention_workspace.hpp"
#include "estimator/workspace/benchmark.hpp"
#include "estimator/workspace/native_convolution.hpp"

namespace stowage {

namespace {

double bytes_of(const TensorView& view, std::int64_t batch) {
  double count = static_cast<double>(element_size(view.type));
  for (const Affine& dimension : view.shape) count *= dimension.real_at(batch);
  return count;
}

tl::unexpected<Diagnostics> too_large(const Storage& storage, std::int64_t batch) {
  return failure(fmt::format("batch {} makes '{}' ({}) larger than {}", batch, storage.name,
                             to_string(storage.storage_class), format_bytes(largest_memory)),
                 hint_of(Cure::smaller_batch));
}

/// A call's own shapes are larger: a step's file need not tie them to storages.
tl::unexpected<Diagnostics> too_large(const KernelNode& node, std::int64_t batch) {
  return failure(fmt::format("batch {} makes the shapes of '{}' ({}) too large to be sized", batch,
                             node.name, kernel_name(node)),
                 hint_of(Cure::smaller_batch));
}

bool is_transposed(Kernel kernel) {
  return kernel == Kernel::transposed_convolution_forward ||
         kernel == Kernel::transposed_convolution_backward_data ||
         kernel == Kernel::transposed_convolution_backward_filter;
}

// So that questions whose answers cannot differ are one question.
ConvolutionSettings relevant(ConvolutionSettings settings, DataType type) {
  settings.tf32 = settings.tf32 || type != DataType::float32;
  return settings;
}

// Our own kernels know nothing of PyTorch's other settings.
ConvolutionSettings settings_of(const StepGraph& graph, DataType type) {
  const ConvolutionSettings& given = graph.settings.convolutions;
  if (!graph.kernel_set().dispatches_by_card) return relevant({.tf32 = given.tf32}, type);
  return relevant(given, type);
}

WorkspaceOrigin joined(WorkspaceOrigin all, WorkspaceOrigin one) {
  if (all == WorkspaceOrigin::none || all == one) return one;
  return one == WorkspaceOrigin::none ? all : WorkspaceOrigin::mixed;
}

}  // namespace

Bytes class_bytes(const SizedStep& step, StorageClass storage_class, Bytes granularity) {
  Bytes bytes;
  for (std::size_t i = 0; i < step.graph->storages.size(); ++i) {
    if (step.graph->storages[i].storage_class == storage_class) {
      bytes += round_up(step.storage_bytes[i], granularity);
    }
  }
  return bytes;
}

Bytes SizedStep::first_workspace(NodeId id) const {
  const Engines& choices = engines[id.index()];
  return choices.empty() ? Bytes() : choices.front().workspace;
}

Bytes SizedStep::least_workspace(NodeId id) const {
  const Engines& choices = engines[id.index()];
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
          .stride = call.window->stride,
          .padding = call.window->padding,
          .dilation = call.window->dilation,
          .groups = call.window->groups,
          .layout = call.layout,
          .settings = settings_of(graph, call.x.type)};
}

WorkspaceAnswer convolution_engines(const StepGraph& graph, const KernelNode& node,
                                    const ConvolutionQuery& query, WorkspaceSource& source) {
  if (!graph.kernel_set().dispatches_by_card) return source.engines(query);
  const bool transposed = is_transposed(node.kernel);
  if (is_native_in_pytorch(query, transposed)) {
    return {.engines = {{"pytorch depthwise", 0_B}}, .origin = WorkspaceOrigin::none};
  }
  if (is_unfolded_in_pytorch(query, graph.settings.compute_capability)) {
    return {.engines = {{"pytorch unfolding", unfolding_bytes(query, transposed)}},
            .origin = WorkspaceOrigin::none};
  }
  return source.engines(query);
}

bool wants_workspace(const KernelNode& node) {
  return node.convolution >= 0 || is_cudnn_attention(node);
}

WorkspaceQuery workspace_query(const StepGraph& graph, const KernelNode& node, std::int64_t batch) {
  if (node.convolution >= 0) return convolution_query(graph, node, batch);
  return attention_query(graph, node, batch);
}

WorkspaceAnswer workspace_engines(const StepGraph& graph, const KernelNode& node,
                                  const WorkspaceQuery& query, WorkspaceSource& source) {
  if (const auto* convolution = std::get_if<ConvolutionQuery>(&query)) {
    return convolution_engines(graph, node, *convolution, source);
  }
  return source.attention_engines(std::get<AttentionQuery>(query));
}

double flops_of(const KernelNode& node, std::int64_t batch) { return node.flops.real_at(batch); }

namespace {

double rows_of_result(const KernelNode& node, std::int64_t batch) {
  if (node.writes.empty() || node.writes.front().shape.empty()) return 1;
  const Shape& shape = node.writes.front().shape;
  const double columns = shape[shape.size() - 1].real_at(batch);
  return columns > 0 ? element_count(shape).real_at(batch) / columns : 1;
}

/// `unmade`: by storage; empty: all are made.
double bytes_moved(const KernelNode& node, std::int64_t batch, const std::vector<bool>& unmade) {
  const auto own = [&](const TensorView& view) {
    const bool is_made = unmade.empty() || !unmade[view.storage.index()];
    return is_made ? bytes_of(view, batch) : 0;
  };
  const std::size_t gathered = first_gathered(node);
  double moved = 0;
  for (std::size_t i = 0; i < node.reads.size(); ++i) {
    const TensorView& view = node.reads[i];
    double share = 1;
    if (i >= gathered && !view.shape.empty()) {
      const double rows = view.shape[0].real_at(batch);
      if (rows > 0) share = std::min(1.0, rows_of_result(node, batch) / rows);
    }
    moved += share * own(view);
  }
  for (const TensorView& view : node.writes) moved += own(view);
  return moved;
}

}  // namespace

double bytes_moved_by(const KernelNode& node, std::int64_t batch) {
  return bytes_moved(node, batch, {});
}

Result<SizedStep> size_storages(std::shared_ptr<const StepGraph> graph, std::int64_t batch,
                                SizedParts parts) {
  if (batch < 1) return failure(fmt::format("batch {} is not at least 1", batch));
  SizedStep sized{.graph = std::move(graph), .batch = batch};
  const StepGraph& step = *sized.graph;
  sized.storage_bytes.reserve(step.storages.size());
  std::int64_t total = 0;
  const std::vector<bool> shared = shared_out(step), unmade = unmade_storages(step, batch);
  for (const Storage& storage : step.storages) {
    try {
      const bool is_made = unmade.empty() || !unmade[sized.storage_bytes.size()];
      const std::int64_t bytes = is_made ? storage.bytes.at(batch) : 0;
      if (bytes < 0) {
        return failure(fmt::format("batch {} makes '{}' ({}) smaller than nothing", batch,
                                   storage.name, to_string(storage.storage_class)),
                       hint_of(Cure::larger_batch));
      }
      total = checked_add(total, bytes);
      if (total > largest_memory.count()) return too_large(storage, batch);
      const bool is_shared = shared[sized.storage_bytes.size()];
      sized.storage_bytes.push_back(is_shared ? kept_of(storage, Bytes(bytes), step)
                                              : Bytes(bytes));
    } catch (const ArithmeticOverflow&) {
      return too_large(storage, batch);
    }
  }
  sized.engines.resize(step.nodes.size());
  if (parts == SizedParts::memory) return sized;
  sized.flops.reserve(step.nodes.size());
  sized.bytes_moved.reserve(step.nodes.size());
  for (const KernelNode& node : step.nodes) {
    sized.flops.push_back(flops_of(node, batch));
    sized.bytes_moved.push_back(bytes_moved(node, batch, unmade));
  }
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

struct CallHash {
  std::size_t operator()(const ConvolutionCall& call) const {
    const ShapeHash hash;
    return hash(call.x.shape) + 3 * hash(call.w.shape) + 5 * hash(call.y.shape) +
           static_cast<std::size_t>(call.direction);
  }
};

/// Asks a source each question once. Calls that are equal at every batch share their answer without
/// a question being made.
class Questioner {
 public:
  Questioner(const StepGraph& graph, std::int64_t batch, WorkspaceSource& source)
      : graph_(graph), batch_(batch), source_(source) {}

  struct Answer {
    Engines engines, benchmark;
    WorkspaceOrigin origin = WorkspaceOrigin::none;
  };
  const Answer& answer(const KernelNode& node) {
    if (node.convolution < 0) return attention(node);
    const ConvolutionCall& call = graph_.convolutions[static_cast<std::size_t>(node.convolution)];
    const Answer*& known = by_call_[is_transposed(node.kernel)][call];
    if (known == nullptr) known = &asked(node);
    return *known;
  }

 private:
  const Answer& asked(const KernelNode& node) {
    ConvolutionQuery query = convolution_query(graph_, node, batch_);
    auto& answers = by_query_[is_transposed(node.kernel)];
    const auto found = answers.find(query);
    if (found != answers.end()) return found->second;
    WorkspaceAnswer given = convolution_engines(graph_, node, query, source_);
    Answer answer{.engines = Engines(std::move(given.engines)), .origin = given.origin};
    if (query.settings.benchmark && !given.benchmark.empty()) {
      answer.engines = Engines(winners_first(given.benchmark));
      answer.benchmark = Engines(std::move(given.benchmark));
    }
    return answers.emplace(std::move(query), std::move(answer)).first->second;
  }

  const Answer& attention(const KernelNode& node) {
    AttentionQuery query = attention_query(graph_, node, batch_);
    const auto found = by_attention_.find(query);
    if (found != by_attention_.end()) return found->second;
    WorkspaceAnswer given = source_.attention_engines(query);
    Answer answer{.engines = Engines(std::move(given.engines)), .origin = given.origin};
    return by_attention_.emplace(std::move(query), std::move(answer)).first->second;
  }

  const StepGraph& graph_;
  std::int64_t batch_;
  WorkspaceSource& source_;
  std::map<AttentionQuery, Answer> by_attention_;
  // Of plain convolutions and of transposed ones: their questions may be the same, but PyTorch runs
  // some of the plain ones itself.
  std::array<std::map<ConvolutionQuery, Answer>, 2> by_query_;
  std::array<std::unordered_map<ConvolutionCall, const Answer*, CallHash>, 2> by_call_;
};

}  // namespace

Result<SizedStep> size_step(std::shared_ptr<const StepGraph> graph, std::int64_t batch,
                            WorkspaceSource& source, SizedParts parts) {
  Result<SizedStep> sized = size_storages(std::move(graph), batch, parts);
  if (!sized) return sized;
  const StepGraph& step = *sized->graph;
  const bool benchmark = settings_of(step, DataType::float32).benchmark;
  if (benchmark) sized->benchmark.resize(step.nodes.size());
  Questioner questioner(step, batch, source);
  for (std::size_t i = 0; i < step.nodes.size(); ++i) {
    const KernelNode& node = step.nodes[i];
    if (!wants_workspace(node)) continue;
    try {
      const Questioner::Answer& answer = questioner.answer(node);
      sized->engines[i] = answer.engines;
      if (benchmark) sized->benchmark[i] = answer.benchmark;
      sized->workspace_origin = joined(sized->workspace_origin, answer.origin);
    } catch (const ArithmeticOverflow&) {
      return too_large(node, batch);
    }
  }
  return sized;
}

}  // namespace stowage
