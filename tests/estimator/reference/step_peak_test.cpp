// Live bytes over whole training steps, phase by phase, against a trace of PyTorch's CUDA path:
// every storage that an operator returned, from there to its last release
// (tests/reference/README.md).
#include <doctest/doctest.h>

#include <algorithm>

#include "estimator/memory/lifetimes.hpp"
#include "estimator/memory/step_memory.hpp"
#include "tests/estimator/reference/reference_model.hpp"

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

/// transformers' loss shifts the labels by padding them by one, [batch, seq + 1], and flattening
/// the shifted part, which copies it unless the batch is 1. Both live while the loss is computed;
/// our description compares with labels that are shifted already.
std::int64_t shifted_labels(const ReferenceModel& reference, const std::string& phase) {
  if (reference.model != "gpt2" || phase != "forward") return 0;
  const auto seq = reference.json.at("settings").at("seq").get<std::int64_t>();
  const std::int64_t padded = reference.batch * (seq + 1);
  const std::int64_t copied = reference.batch == 1 ? 0 : reference.batch * seq;
  return (padded + copied) * element_size(DataType::int64);
}

std::vector<Bytes> live_of(const SizedStep& step, Bytes granularity, StepNumber number) {
  const StepMemory memory = step_memory(step, {.step = number, .granularity = granularity});
  return live_bytes(lifetimes(memory.uses, memory.steps), memory.steps);
}

}  // namespace

TEST_CASE("the peak of each phase of a training step is PyTorch's, to the byte") {
  int compared = 0;
  for (const ReferenceModel& reference : reference_models()) {
    ModelGraph model = our_model(reference);
    model.loss_in_model = true;  // the reference's loop has output and loss from one call
    for (const auto& [name, trace] : reference.json.at("step_trace_cuda").items()) {
      CAPTURE(reference.file);
      CAPTURE(name);
      const SizedStep step = our_step(model, reference, optimizer(name));
      const std::vector<Bytes> live = live_of(step, Bytes(1), StepNumber::steady);
      for (const std::string phase : {"forward", "backward", "optimizer"}) {
        CAPTURE(phase);
        CAPTURE(trace.at("step2_phases").at(phase).at("op").get<std::string>());
        CHECK(phase_peak(step, live, phase) + shifted_labels(reference, phase) ==
              trace.at("step2_phases").at(phase).at("peak").get<std::int64_t>());
      }
      CHECK(peak(live_of(step, Bytes(512), StepNumber::steady)).bytes.count() ==
            trace.at("step2_peak_rounded_512").get<std::int64_t>());
      CHECK(peak(live_of(step, Bytes(1), StepNumber::first)).bytes.count() ==
            trace.at("step1_peak").get<std::int64_t>());
      ++compared;
    }
  }
  CHECK(compared >= 80);
}

}  // namespace stowage::reference
