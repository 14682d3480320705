#include "tests/estimator/reference/step_comparison.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "estimator/memory/lifetimes.hpp"
#include "estimator/memory/step_memory.hpp"
#include "tests/estimator/reference/known_differences.hpp"
#include "tests/estimator/reference/peak_gaps.hpp"
#include "tests/estimator/reference/reference_step.hpp"

namespace stowage::reference {

namespace {

constexpr Bytes pytorch_block{512};

std::vector<Bytes> live_of(const ReferenceModel& reference, const SizedStep& step,
                           Bytes granularity, StepNumber number, Bytes besides) {
  const MemoryRules rules{.step = number, .granularity = granularity};
  const StepMemory memory = step_memory(step, rules);
  std::vector<Bytes> live = live_bytes(lifetimes(memory.uses, memory.steps), memory.steps);
  for (Bytes& bytes : live) bytes += round_up(besides, granularity);
  const AccountedLive accounted = accounted_live(reference, step, rules, live);
  CHECK(accounted.without_effect == "");
  return accounted.live;
}

}  // namespace

void compare_peaks(const ReferenceModel& reference) {
  const ModelGraph model = traced_model(reference);
  const Bytes besides = held_besides(reference);
  const PeakGap gap = peak_gap(reference);
  for (const StepTrace& trace : reference.traces) {
    CAPTURE(trace.optimizer);
    const SizedStep step = traced_step(model, reference, trace.optimizer);
    const auto live = [&](Bytes granularity, StepNumber number) {
      return live_of(reference, step, granularity, number, besides);
    };
    const std::vector<Bytes> steady = live(Bytes(1), StepNumber::steady);
    // Hooks run updates within backward.
    const bool hooks = step.graph->settings.early_updates;
    for (const auto& entry : trace.phases) {
      if (hooks && entry.first == "optimizer") continue;
      CAPTURE(entry.first);
      CAPTURE(entry.second.op);
      std::int64_t ours = phase_peak(step, steady, entry.first);
      if (hooks && entry.first == "backward") {
        ours = std::max(ours, phase_peak(step, steady, "optimizer"));
      }
      if (entry.first == "forward") ours += gap.forward.count();
      if (entry.first == "backward") ours += gap.backward.count();
      CHECK(ours == entry.second.bytes);
    }
    const Bytes rounded = peak(live(pytorch_block, StepNumber::steady)).bytes + gap.rounded;
    CHECK(rounded.count() == trace.rounded_peak);
    const Bytes first = peak(live(Bytes(1), StepNumber::first)).bytes + gap.first;
    CHECK(first.count() == trace.first_peak);
  }
}

}  // namespace stowage::reference
