// Live bytes over whole training steps, phase by phase, against a trace of PyTorch's CUDA path:
// every storage that an operator returned, from there to its last release
// (tests/reference/README.md).
// One subcase a file: -sc="resnet*".
#include <doctest/doctest.h>

#include <algorithm>

#include "estimator/memory/lifetimes.hpp"
#include "estimator/memory/step_memory.hpp"
#include "tests/estimator/reference/known_differences.hpp"
#include "tests/estimator/reference/unequal_steps.hpp"

namespace stowage::reference {

namespace {

OptimizerSettings optimizer(const std::string& name) {
  if (name == "sgd-momentum") return {.name = "sgd", .momentum = 0.9};
  return {.name = name};
}

std::int64_t phase_peak(const SizedStep& step, const std::vector<Bytes>& live,
                        const std::string& phase) {
  std::int64_t top = 0;
  for (std::size_t i = 0; i < live.size(); ++i) {
    const Phase at = step.graph->nodes[i].phase;
    const bool in_phase = phase == "optimizer"  ? at == Phase::update
                          : phase == "backward" ? at == Phase::backward
                                                : at == Phase::forward || at == Phase::loss;
    if (in_phase) top = std::max(top, live[i].count());
  }
  return top;
}

std::vector<Bytes> live_of(const ReferenceModel& reference, const SizedStep& step,
                           Bytes granularity, StepNumber number) {
  const StepMemory memory = step_memory(step, {.step = number, .granularity = granularity});
  const std::vector<Bytes> live = live_bytes(lifetimes(memory.uses, memory.steps), memory.steps);
  const AccountedLive accounted = accounted_live(reference, step, granularity, live);
  CHECK(accounted.without_effect == "");
  return accounted.live;
}

}  // namespace

TEST_CASE("the peak of each phase of a training step is PyTorch's, to the byte") {
  for (const ReferenceModel& reference : reference_models()) {
    if (!is_plain(reference)) continue;
    SUBCASE(reference.file.c_str()) {
      ModelGraph model = our_model(reference);
      model.loss_in_model = true;  // the reference's loop has output and loss from one call
      PeakComparison peaks(reference.file);
      for (const StepTrace& trace : reference.traces) {
        CAPTURE(trace.optimizer);
        const SizedStep step = our_step(model, reference, optimizer(trace.optimizer));
        const std::vector<Bytes> live = live_of(reference, step, Bytes(1), StepNumber::steady);
        for (const auto& [phase, theirs] : trace.phases) {
          CAPTURE(phase);
          CAPTURE(theirs.op);
          peaks.compare(phase_peak(step, live, phase), theirs.bytes);
        }
        peaks.compare(peak(live_of(reference, step, Bytes(512), StepNumber::steady)).bytes.count(),
                      trace.rounded_peak);
        peaks.compare(peak(live_of(reference, step, Bytes(1), StepNumber::first)).bytes.count(),
                      trace.first_peak);
      }
      peaks.finish();
    }
  }
}

}  // namespace stowage::reference
