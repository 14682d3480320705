#include "answers/table/shared_runs.hpp"

#include <algorithm>

#include "estimator/check/batch_search.hpp"
#include "estimator/runtime/allocator_replay.hpp"
#include "estimator/runtime/runtime_run.hpp"

namespace stowage {

namespace {

bool are_same_buffers(const std::vector<RuntimeBuffer>& a, const std::vector<RuntimeBuffer>& b) {
  return std::ranges::equal(a, b, [](const RuntimeBuffer& x, const RuntimeBuffer& y) {
    return x.bytes == y.bytes && x.first_use == y.first_use;
  });
}

}  // namespace

ValueRun SharedRuns::of(const std::shared_ptr<const SizedSteps>& sized, const Card& card,
                        const CheckSettings& settings) {
  Known& known = runs_[sized.get()];
  known.sized = sized;
  known.steps.resize(sized->steps.size());
  std::vector<ValueRun> runs;
  runs.reserve(sized->steps.size());
  for (std::size_t i = 0; i < sized->steps.size(); ++i) {
    runs.push_back(run_of(sized->steps[i], known.steps[i], card, settings));
  }
  return larger_run(runs);
}

ValueRun SharedRuns::run_of(const SizedStep& step, std::vector<RoomyStep>& known, const Card& card,
                            const CheckSettings& settings) {
  const GraphOnCard& graph = on_card(step.graph, card, settings);
  if (!graph.is_served) return run_of_step(step, card, settings);
  const RoomyStep& plenty = roomy(step, known, graph.buffers, settings);
  const bool is_roomy = plenty.run.reserved <= graph.limit;
  // Else the cache is given back where the driver refuses, and only a run on the card says how that
  // ends.
  const auto completes = [&] {
    return graph.limit >= Bytes() && plenty.most_live <= graph.limit &&
           replay_process(step, touches_of(*step.graph),
                          {.allocator = settings.allocator,
                           .limit = graph.limit,
                           .buffers = graph.buffers,
                           .outside = graph.outside,
                           .others = settings.in_use + settings.reserve})
               .completed();
  };
  if (!is_roomy && completes()) return run_of_step(step, card, settings);
  const Bytes taken = plenty.run.reserved + graph.outside;
  const Bytes available = card.cuda_total - settings.in_use - settings.reserve;
  const bool fits = is_roomy && taken <= available;
  return {.fits = fits,
          .calm = fits && plenty.run.settles,
          .device_bytes = taken,
          .headroom = available - taken,
          .available = available,
          .usual_margin = graph.usual_margin};
}

const SharedRuns::RoomyStep& SharedRuns::roomy(const SizedStep& step, std::vector<RoomyStep>& known,
                                               const std::vector<RuntimeBuffer>& buffers,
                                               const CheckSettings& settings) {
  const auto found = std::ranges::find_if(
      known, [&](const RoomyStep& one) { return are_same_buffers(one.buffers, buffers); });
  if (found != known.end()) return *found;
  const std::vector<Touches>& touches = touches_of(*step.graph);
  const ProcessReplay replay = replay_process(
      step, touches,
      {.allocator = settings.allocator, .limit = unlimited_memory, .buffers = buffers});
  const std::vector<Bytes> live = live_bytes(step,
                                             {.granularity = runtime_granularity(settings.runtime),
                                              .buffers = buffers,
                                              .with_workspaces = false},
                                             touches);
  known.push_back({.buffers = buffers,
                   .run = {.reserved = replay.reserved, .settles = replay.steady_reached},
                   .most_live = live.empty() ? Bytes() : std::ranges::max(live)});
  return known.back();
}

const SharedRuns::GraphOnCard& SharedRuns::on_card(const std::shared_ptr<const StepGraph>& graph,
                                                   const Card& card,
                                                   const CheckSettings& settings) {
  GraphOnCard& known = graphs_[{graph.get(), &card}];
  if (known.graph) return known;
  known.graph = graph;
  known.is_served = RoomyRuns::serves(*graph, settings);
  if (!known.is_served) return known;
  known.limit = allocator_limit(*graph, card, settings);
  known.outside = outside_allocator(*graph, card, settings);
  known.usual_margin = stowage::usual_margin(*graph, card, settings);
  known.buffers = runtime_buffers(*graph, card, settings);
  return known;
}

const std::vector<Touches>& SharedRuns::touches_of(const StepGraph& graph) {
  const auto known = touches_.find(&graph);
  if (known != touches_.end()) return known->second;
  return touches_.emplace(&graph, storage_touches(graph)).first->second;
}

}  // namespace stowage
