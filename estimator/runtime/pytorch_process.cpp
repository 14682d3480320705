// A process that trains or infers with eager PyTorch: its caching allocator, capped at what the
// card has left.
#include <fmt/format.h>

#include "estimator/memory/partition.hpp"
#include "estimator/runtime/allocator_replay.hpp"
#include "estimator/runtime/allocator_trace.hpp"
#include "estimator/runtime/cublas_workspaces.hpp"
#include "estimator/runtime/runtime_process.hpp"

namespace stowage {

namespace {

ReplaySettings within(const StepOnCard& on_card, Bytes limit, const AllocatorSettings& allocator) {
  const CheckSettings& settings = on_card.settings;
  return {.allocator = allocator,
          .limit = limit,
          .buffers = on_card.buffers,
          .outside = outside_allocator(*on_card.step.graph, on_card.card, settings),
          .others = settings.in_use + settings.reserve};
}

ProcessReplay replay_within(const StepOnCard& on_card, Bytes limit,
                            const AllocatorSettings& allocator) {
  return replay_process(on_card.step, on_card.touches, within(on_card, limit, allocator));
}

std::string message_of(const StepGraph& graph, const ProcessReplay::Failure& failure) {
  const std::string text = pytorch_message(failure.out_of_memory);
  if (!failure.node.valid()) return fmt::format("while the model is loaded: {}", text);
  return fmt::format("in step {}, while {} runs: {}", failure.step, graph.node(failure.node).name,
                     text);
}

// Below 0 the context and the libraries alone do not fit: no tensor is asked for.
bool has_room(const StepOnCard& on_card) { return on_card.limit >= Bytes(); }

AllocationFailure failure_of(const StepOnCard& on_card, const ProcessReplay::Failure& failure) {
  const StepGraph& graph = *on_card.step.graph;
  AllocatorSettings expandable = on_card.settings.allocator;
  expandable.expandable_segments = true;
  const bool tried = on_card.settings.allocator.expandable_segments ||
                     on_card.settings.stack.pytorch < first_expandable_segments;
  return {.at = failure,
          .node = failure.node.valid() ? graph.node(failure.node).name : "",
          .message = message_of(graph, failure),
          .expandable_segments_would_do =
              !tried && has_room(on_card) &&
              replay_within(on_card, on_card.limit, expandable).completed()};
}

RuntimeRun run_pytorch(const StepOnCard& on_card) {
  const AllocatorSettings& allocator = on_card.settings.allocator;
  RuntimeRun result;
  ProcessReplay run =
      replay_within(on_card, has_room(on_card) ? on_card.limit : unlimited_memory, allocator);
  if (run.failure) {
    result.failure = failure_of(on_card, *run.failure);
    run = replay_within(on_card, unlimited_memory, allocator);
  }
  result.replicas.push_back(std::move(run));
  return result;
}

/// Those of `run`: within the card's limit only where that completed.
ReplaySettings settings_of(const StepOnCard& on_card, const RuntimeRun& run) {
  const bool is_limited = !run.failure && has_room(on_card);
  return within(on_card, is_limited ? on_card.limit : unlimited_memory, on_card.settings.allocator);
}

std::vector<Bytes> reserved_in_pytorch(const StepOnCard& on_card, const RuntimeRun& run) {
  return reserved_by_node(on_card.step, on_card.touches, settings_of(on_card, run));
}

bool completes_in_pytorch(const StepOnCard& on_card) {
  return has_room(on_card) &&
         replay_within(on_card, on_card.limit, on_card.settings.allocator).completed();
}

std::vector<RuntimeBuffer> pytorch_buffers(const StepGraph& graph, const Card& card,
                                           const CheckSettings& settings) {
  std::vector<RuntimeBuffer> buffers = parallel_buffers(graph);
  const std::vector<RuntimeBuffer> workspaces =
      cublas_workspaces(graph, card, settings.stack.pytorch);
  buffers.insert(buffers.end(), workspaces.begin(), workspaces.end());
  return buffers;
}

// The driver hands out whole segments.
Bytes pytorch_limit(Bytes left, const StepGraph& /*graph*/, const Card& /*card*/,
                    const CheckSettings& /*settings*/) {
  constexpr Bytes driver_segment{2 << 20};
  if (left < Bytes()) return left;
  return Bytes(left.count() / driver_segment.count() * driver_segment.count());
}

std::vector<RuntimeRow> pytorch_rows(const RuntimeRun& run, const CheckSettings& /*settings*/,
                                     Bytes tensor_bytes) {
  return {
      {"cached by the allocator", run.reserved().most - tensor_bytes,
       fmt::format("PyTorch's caching allocator, simulated for {} steps", run.process().steps)}};
}

}  // namespace

AllocatorTrace trace_pytorch(const StepOnCard& on_card, const RuntimeRun& run) {
  return trace_allocator(on_card.step, on_card.touches, settings_of(on_card, run));
}

RuntimeProcess pytorch_process() {
  return {.runtime = Runtime::pytorch,
          .run = run_pytorch,
          .completes = completes_in_pytorch,
          .buffers = pytorch_buffers,
          .limit = pytorch_limit,
          .reserved_by_node = reserved_in_pytorch,
          .allocator_rows = pytorch_rows,
          .limit_names_cause = true,
          .own_kernels = KernelLibrary::pytorch,
          .libraries_apart_since = first_lazy_cuda};
}

}  // namespace stowage
