// The ideal runtime: what is live, and nothing else.
#include "estimator/runtime/runtime_process.hpp"
#include "estimator/runtime/unallocated_run.hpp"

namespace stowage {

namespace {

Bytes live_peak(const StepOnCard& on_card, const MemoryRules& rules) {
  return peak(live_bytes(on_card.step, rules, on_card.touches)).bytes;
}

RuntimeRun run_ideal(const StepOnCard& on_card) { return run_unallocated(on_card, live_peak); }

bool completes_in_ideal(const StepOnCard& on_card) {
  return completes_unallocated(on_card, live_peak);
}

}  // namespace

RuntimeProcess ideal_process() {
  return {.runtime = Runtime::ideal,
          .run = run_ideal,
          .completes = completes_in_ideal,
          .buffers = unallocated_buffers};
}

}  // namespace stowage
