#include <fmt/format.h>

#include "estimator/runtime/allocator_replay.hpp"
#include "estimator/runtime/runtime_run.hpp"

namespace stowage {

namespace {

ProcessReplay replay_within(const StepOnCard& on_card, Bytes limit,
                            const AllocatorSettings& allocator) {
  const CheckSettings& settings = on_card.settings;
  return replay_process(on_card.step, on_card.touches,
                        {.allocator = allocator,
                         .limit = limit,
                         .buffers = on_card.buffers,
                         .outside = outside_allocator(*on_card.step.graph, on_card.card, settings),
                         .others = settings.in_use + settings.reserve});
}

std::string message_of(const StepGraph& graph, const ProcessReplay::Failure& failure) {
  const std::string text = pytorch_message(failure.out_of_memory);
  if (!failure.node.valid()) return fmt::format("while the model is loaded: {}", text);
  return fmt::format("in step {}, while {} runs: {}", failure.step, graph.node(failure.node).name,
                     text);
}

// Below 0 the process does not come so far as to ask for a tensor.
bool has_room(const StepOnCard& on_card) { return on_card.limit >= Bytes(); }

AllocationFailure failure_of(const StepOnCard& on_card, const ProcessReplay::Failure& failure) {
  const StepGraph& graph = *on_card.step.graph;
  AllocatorSettings expandable = on_card.settings.allocator;
  expandable.expandable_segments = true;
  const bool tried = on_card.settings.allocator.expandable_segments;
  return {.at = failure,
          .node = failure.node.valid() ? graph.node(failure.node).name : "",
          .message = message_of(graph, failure),
          .expandable_segments_would_do =
              !tried && has_room(on_card) &&
              replay_within(on_card, on_card.limit, expandable).completed()};
}

}  // namespace

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

bool completes_in_pytorch(const StepOnCard& on_card) {
  return has_room(on_card) &&
         replay_within(on_card, on_card.limit, on_card.settings.allocator).completed();
}

}  // namespace stowage
