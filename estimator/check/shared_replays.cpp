#include "estimator/check/shared_replays.hpp"

#include <algorithm>
#include <utility>

#include "estimator/runtime/allocator_replay.hpp"
#include "estimator/runtime/runtime_run.hpp"
#include "estimator/runtime/sum_workspaces.hpp"

namespace stowage {

namespace {

bool is_same_buffer(const RuntimeBuffer& a, const RuntimeBuffer& b) {
  return a.bytes == b.bytes && a.first_use == b.first_use;
}

bool times_convolutions(const StepGraph& graph) {
  return graph.settings.convolutions.benchmark && !graph.convolutions.empty();
}

}  // namespace

bool equal_except_capability(const StepGraph& a, const StepGraph& b) {
  if (&a == &b) return true;
  LoweringSettings settings = b.settings;
  settings.compute_capability = a.settings.compute_capability;
  return a.settings == settings && a.storages == b.storages && a.script_holds == b.script_holds &&
         a.nodes == b.nodes;
}

SharedReplays::SharedReplays(std::shared_ptr<const StepGraph> graph,
                             std::vector<RuntimeBuffer> buffers, const AllocatorSettings& allocator)
    : graph_(std::move(graph)), buffers_(std::move(buffers)), allocator_(allocator) {
  for (std::size_t i = 0; i < graph_->nodes.size(); ++i) {
    if (takes_sum_workspace(*graph_, graph_->nodes[i])) sums_.push_back(i);
  }
}

bool SharedReplays::serves(const StepGraph& graph, const CheckSettings& settings) {
  const AllocatorSettings& allocator = settings.allocator;
  const bool looks_at_total = allocator.garbage_collection_threshold > 0 ||
                              allocator.memory_fraction || allocator.expandable_segments ||
                              allocator.refuse_early;
  const bool is_cached = traits(settings.runtime).allocator == AllocatorKind::caching;
  return is_cached && !looks_at_total && !times_convolutions(graph);
}

bool SharedReplays::matches(const StepGraph& graph,
                            const std::vector<RuntimeBuffer>& buffers) const {
  return std::ranges::equal(buffers_, buffers, is_same_buffer) &&
         equal_except_capability(*graph_, graph);
}

SharedReplays::Question SharedReplays::question_of(const SizedStep& step) const {
  Question question{step.batch, {}};
  auto sum = sums_.begin();
  for (std::size_t node = 0; node < step.engines.size(); ++node) {
    if (sum != sums_.end() && *sum == node) {
      ++sum;
      continue;
    }
    const Engines& engines = step.engines[node];
    if (engines.empty()) continue;
    question.second.emplace_back(std::ssize(engines));
    for (const Engine& engine : engines) question.second.push_back(engine.workspace);
  }
  return question;
}

SharedReplays::KnownReplay SharedReplays::known_replay(const SizedStep& step,
                                                       const ProcessReplay& replay) const {
  KnownReplay known{
      .run = {.limits = replay.same_limits,
              .completes = replay.completed(),
              .taken = {.reserved = replay.reserved, .settles = replay.steady_reached}}};
  for (const std::size_t node : sums_) {
    known.workspaces.push_back(step.first_workspace(NodeId::of(node)));
    const auto range = replay.same_workspaces.find(node);
    known.ranges.push_back(range == replay.same_workspaces.end() ? WorkspaceRange()
                                                                 : range->second);
  }
  return known;
}

bool SharedReplays::serves_sums(const KnownReplay& known, const SizedStep& step) const {
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const Bytes workspace = step.first_workspace(NodeId::of(sums_[i]));
    if (workspace == known.workspaces[i]) continue;
    // Of a node that took none it is not known what there was room for.
    if (known.workspaces[i] == Bytes() || allocator_.max_split_size) return false;
    if (!known.ranges[i].contains(workspace, allocator_)) return false;
  }
  return true;
}

std::optional<LimitedReplay> SharedReplays::known(const Question& question, Bytes limit,
                                                  const SizedStep& step) {
  const std::lock_guard lock(mutex_);
  for (const KnownReplay& known : runs_[question]) {
    if (known.run.limits.contains(limit) && serves_sums(known, step)) return known.run;
  }
  return std::nullopt;
}

ReplayOutcome SharedReplays::without_limit(const SizedStep& step,
                                           const std::vector<Touches>& touches) {
  return at_limit(unlimited_memory, step, touches).taken;
}

LimitedReplay SharedReplays::at_limit(Bytes limit, const SizedStep& step,
                                      const std::vector<Touches>& touches) {
  Question question = question_of(step);
  if (const auto found = known(question, limit, step)) return *found;
  // Two threads may run the same at once: both come to the same figures.
  const ProcessReplay replay =
      replay_process(step, touches, {.allocator = allocator_, .limit = limit, .buffers = buffers_});
  KnownReplay known = known_replay(step, replay);
  const LimitedReplay run = known.run;
  const std::lock_guard lock(mutex_);
  runs_[std::move(question)].push_back(std::move(known));
  return run;
}

}  // namespace stowage
