// A process of our executor: one static arena.
#include "estimator/arena/arena.hpp"
#include "estimator/runtime/runtime_process.hpp"
#include "estimator/runtime/unallocated_run.hpp"

namespace stowage {

namespace {

Bytes arena_bytes(const StepOnCard& on_card, const MemoryRules& rules) {
  const StepMemory memory = step_memory(on_card.step, rules, on_card.touches);
  std::vector<ArenaRequest> requests(memory.uses.size());
  for (const Lifetime& lifetime : lifetimes(memory.uses, memory.steps)) {
    ArenaRequest& request = requests[static_cast<std::size_t>(lifetime.use)];
    request.live.push_back(lifetime.steps);
    request.bytes = lifetime.bytes;
  }
  return pack_arena(requests).peak;
}

RuntimeRun run_stowage(const StepOnCard& on_card) { return run_unallocated(on_card, arena_bytes); }

bool completes_in_stowage(const StepOnCard& on_card) {
  return completes_unallocated(on_card, arena_bytes);
}

std::vector<RuntimeRow> arena_rows(const RuntimeRun& run, const CheckSettings& /*settings*/,
                                   Bytes tensor_bytes) {
  return {{"arena rounding and gaps", run.reserved().most - tensor_bytes,
           "256-byte alignment and packing"}};
}

}  // namespace

RuntimeProcess stowage_process() {
  return {.runtime = Runtime::stowage,
          .run = run_stowage,
          .completes = completes_in_stowage,
          .buffers = unallocated_buffers,
          .allocator_rows = arena_rows};
}

}  // namespace stowage
