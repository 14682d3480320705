#include "estimator/check/roomy_runs.hpp"

#include <algorithm>
#include <utility>

#include "estimator/runtime/allocator_replay.hpp"
#include "estimator/runtime/runtime_run.hpp"

namespace stowage {

namespace {

bool is_same_buffer(const RuntimeBuffer& a, const RuntimeBuffer& b) {
  return a.bytes == b.bytes && a.first_use == b.first_use;
}

bool times_convolutions(const StepGraph& graph) {
  return graph.settings.convolutions.benchmark && !graph.convolutions.empty();
}

}  // namespace

bool run_alike(const StepGraph& a, const StepGraph& b) {
  if (&a == &b) return true;
  LoweringSettings settings = b.settings;
  settings.compute_capability = a.settings.compute_capability;
  return a.settings == settings && a.storages == b.storages && a.nodes == b.nodes;
}

RoomyRuns::RoomyRuns(std::shared_ptr<const StepGraph> graph, std::vector<RuntimeBuffer> buffers,
                     const AllocatorSettings& allocator)
    : graph_(std::move(graph)), buffers_(std::move(buffers)), allocator_(allocator) {}

bool RoomyRuns::serves(const StepGraph& graph, const CheckSettings& settings) {
  const AllocatorSettings& allocator = settings.allocator;
  const bool looks_at_total = allocator.garbage_collection_threshold > 0 ||
                              allocator.memory_fraction || allocator.expandable_segments ||
                              allocator.refuse_early;
  return settings.runtime == Runtime::pytorch && !looks_at_total && !times_convolutions(graph);
}

bool RoomyRuns::are_of(const StepGraph& graph, const std::vector<RuntimeBuffer>& buffers) const {
  return std::ranges::equal(buffers_, buffers, is_same_buffer) && run_alike(*graph_, graph);
}

RoomyRuns::Question RoomyRuns::question_of(const SizedStep& step) {
  Question question{step.batch, {}};
  for (std::size_t node = 0; node < step.engines.size(); ++node) {
    const Engines& engines = step.engines[node];
    if (engines.empty()) continue;
    // Which nodes have a workspace depends on the card (sum_workspaces.hpp).
    question.second.emplace_back(static_cast<std::int64_t>(node));
    question.second.emplace_back(std::ssize(engines));
    for (const Engine& engine : engines) question.second.push_back(engine.workspace);
  }
  return question;
}

std::optional<LimitedRun> RoomyRuns::known(const Question& question, Bytes limit) {
  const std::lock_guard lock(mutex_);
  for (const LimitedRun& run : runs_[question]) {
    if (run.limits.contains(limit)) return run;
  }
  return std::nullopt;
}

RoomyRun RoomyRuns::of(const SizedStep& step, const std::vector<Touches>& touches) {
  return within(unlimited_memory, step, touches).taken;
}

LimitedRun RoomyRuns::within(Bytes limit, const SizedStep& step,
                             const std::vector<Touches>& touches) {
  Question question = question_of(step);
  if (const auto found = known(question, limit)) return *found;
  // Two threads may run the same at once: both come to the same figures.
  const ProcessReplay replay =
      replay_process(step, touches, {.allocator = allocator_, .limit = limit, .buffers = buffers_});
  const LimitedRun run{.limits = replay.same_limits,
                       .completes = replay.completed(),
                       .taken = {.reserved = replay.reserved, .settles = replay.steady_reached}};
  const std::lock_guard lock(mutex_);
  runs_[std::move(question)].push_back(run);
  return run;
}

}  // namespace stowage
