#include <algorithm>

#include "estimator/arena/arena.hpp"
#include "estimator/runtime/runtime_run.hpp"

namespace stowage {

namespace {

Bytes arena_bytes(const StepMemory& memory) {
  std::vector<ArenaRequest> requests(memory.uses.size());
  for (const Lifetime& lifetime : lifetimes(memory.uses, memory.steps)) {
    ArenaRequest& request = requests[static_cast<std::size_t>(lifetime.use)];
    request.live.push_back(lifetime.steps);
    request.bytes = lifetime.bytes;
  }
  return pack_arena(requests).peak;
}

Bytes held(const StepOnCard& on_card, const MemoryRules& rules) {
  if (on_card.settings.runtime == Runtime::stowage) {
    return arena_bytes(step_memory(on_card.step, rules, on_card.touches));
  }
  return peak(live_bytes(on_card.step, rules, on_card.touches)).bytes;
}

AllocatorLevels all_in_use(Bytes bytes) { return {bytes, bytes}; }

}  // namespace

RuntimeRun run_unallocated(const StepOnCard& on_card) {
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

}  // namespace stowage
