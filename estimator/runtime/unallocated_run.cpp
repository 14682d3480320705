#include "estimator/runtime/unallocated_run.hpp"

#include <algorithm>

#include "estimator/memory/partition.hpp"

namespace stowage {

namespace {

AllocatorLevels all_in_use(Bytes bytes) { return {bytes, bytes}; }

// By NodeId: the first engine that fits beside what else is live within `limit`, the smallest one
// where none does. `live` is without workspaces.
std::vector<int> fitting_engines(const SizedStep& step, const std::vector<Bytes>& live, Bytes limit,
                                 Bytes granularity) {
  std::vector<int> chosen(step.engines.size(), 0);
  for (std::size_t i = 0; i < step.engines.size(); ++i) {
    const Engines& choices = step.engines[i];
    const auto fits = [&](const Engine& engine) {
      return live[i] + round_up(engine.workspace, granularity) <= limit;
    };
    const auto first = std::find_if(choices.begin(), choices.end(), fits);
    const auto taken = first != choices.end()
                           ? first
                           : std::min_element(choices.begin(), choices.end(),
                                              [](const Engine& a, const Engine& b) {
                                                return a.workspace < b.workspace;
                                              });
    if (!choices.empty()) chosen[i] = static_cast<int>(taken - choices.begin());
  }
  return chosen;
}

}  // namespace

RuntimeRun run_unallocated(const StepOnCard& on_card, HeldBytes held) {
  const SizedStep& step = on_card.step;
  MemoryRules rules{.granularity = runtime_granularity(on_card.settings.runtime),
                    .buffers = on_card.buffers,
                    .with_workspaces = false};
  ProcessReplay process{.steady_reached = true};
  process.engine = fitting_engines(step, live_bytes(step, rules, on_card.touches), on_card.limit,
                                   rules.granularity);
  rules.engine = process.engine;
  rules.with_workspaces = true;
  process.loaded = all_in_use(class_bytes(step, StorageClass::parameter, rules.granularity) +
                              class_bytes(step, StorageClass::buffer, rules.granularity));
  process.reserved = held(on_card, rules);
  process.steady = all_in_use(process.reserved);
  if (step.graph->settings.mode == Mode::train) {
    rules.step = StepNumber::first;
    process.first_step = all_in_use(held(on_card, rules));
  }
  RuntimeRun run;
  run.replicas.push_back(std::move(process));
  return run;
}

bool completes_unallocated(const StepOnCard& on_card, HeldBytes held) {
  const CheckSettings& settings = on_card.settings;
  const Bytes taken = run_unallocated(on_card, held).reserved().most +
                      outside_allocator(*on_card.step.graph, on_card.card, settings);
  return on_card.card.cuda_total - settings.in_use - settings.reserve - taken >= Bytes();
}

std::vector<RuntimeBuffer> unallocated_buffers(const StepGraph& graph, const Card& /*card*/,
                                               const CheckSettings& /*settings*/) {
  return parallel_buffers(graph);
}

}  // namespace stowage
