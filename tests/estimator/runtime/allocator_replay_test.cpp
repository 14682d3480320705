#include "estimator/runtime/allocator_replay.hpp"

#include <doctest/doctest.h>

#include "estimator/check/check.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "tests/support/described_model.hpp"
#include "tests/support/one_layer.hpp"

namespace stowage {

namespace {

constexpr Bytes plenty{std::int64_t{1} << 50};

/// Two engines for every convolution.
class TwoEngines : public WorkspaceSource {
 public:
  explicit TwoEngines(Bytes first) : first_(first) {}
  WorkspaceAnswer engines(const ConvolutionQuery&) override {
    return {.engines = {{"first", first_}, {"second", 1_KiB}}, .origin = WorkspaceOrigin::rule};
  }

 private:
  Bytes first_;
};

SizedStep sized(const ModelGraph& model, std::int64_t batch, Bytes workspace,
                const std::string& optimizer = "adam", Mode mode = Mode::train) {
  TwoEngines source(workspace);
  auto step = size_step(
      testing::lowered(
          model, {.kernels = KernelSet::pytorch, .mode = mode, .optimizer = {.name = optimizer}}),
      batch, source);
  REQUIRE(step.has_value());
  return *std::move(step);
}

ProcessReplay run(const SizedStep& step, Bytes limit = plenty,
                  std::vector<RuntimeBuffer> buffers = {}) {
  return replay_process(step, storage_touches(*step.graph),
                        {.limit = limit, .buffers = std::move(buffers)});
}

}  // namespace

TEST_CASE("a layer of 4 MiB is loaded into a segment of 20 MiB, and its step fills it") {
  const SizedStep step = sized(testing::described(testing::one_layer), 1, {});
  const ProcessReplay replay = run(step);
  REQUIRE(replay.completed());
  CHECK(replay.loaded.allocated == 4_MiB);
  CHECK(replay.loaded.reserved == 20_MiB);
  // Weight, gradient and two moments are 16 MiB of it; the square root that Adam's foreach step
  // takes is the fifth. Everything else is small: one segment of 2 MiB.
  CHECK(replay.reserved == 22_MiB);
  CHECK(replay.steady.allocated >= 20_MiB);
  CHECK(replay.steps == 2);
}

TEST_CASE("the peak of the tensors is never more than what is allocated, nor that than reserved") {
  for (const char* name : {"mlp", "mnist-cnn", "resnet18", "gpt2"}) {
    CAPTURE(name);
    const SizedStep step = sized(testing::shipped(name), 2, 3_MiB);
    const ProcessReplay replay = run(step);
    REQUIRE(replay.completed());
    const StepMemory memory = step_memory(step, {.granularity = 512_B});
    const std::vector<Bytes> live = live_bytes(memory.uses, memory.steps);
    CHECK(peak(live).bytes <= replay.steady.allocated);
    // An unsplit block is at most 1 MiB larger than what was asked of it.
    CHECK(replay.steady.allocated.count() <=
          peak(live).bytes.count() + static_cast<std::int64_t>(memory.uses.size()) * (1 << 20));
    CHECK(replay.steady.reserved <= replay.reserved);
    CHECK(replay.loaded.reserved <= replay.first_step.reserved);
    CHECK(replay.releases == 0);
    CHECK(replay.steps < most_replayed_steps);
  }
}

TEST_CASE("capped at what it reserves a process runs as before; below its tensors it fails") {
  const SizedStep step = sized(testing::shipped("resnet18"), 4, 8_MiB);
  const ProcessReplay free = run(step);
  const ProcessReplay capped = run(step, free.reserved);
  CHECK(capped.completed());
  CHECK(capped.reserved == free.reserved);
  CHECK(capped.releases == 0);
  const ProcessReplay failed = run(step, 120_MiB);
  REQUIRE_FALSE(failed.completed());
  CHECK(failed.failure->node.valid());
  CHECK(failed.failure->out_of_memory.total == 120_MiB);
  CHECK(failed.reserved <= 120_MiB);
  const ProcessReplay unloaded = run(step, 20_MiB);
  REQUIRE_FALSE(unloaded.completed());
  CHECK_FALSE(unloaded.failure->node.valid());
  CHECK(unloaded.failure->step == 0);
}

TEST_CASE("an engine that finds no room gives way to the next, after the cache was given back") {
  const SizedStep step = sized(testing::shipped("mnist-cnn"), 4, 256_MiB);
  const ProcessReplay roomy = run(step);
  CHECK(roomy.reserved > 256_MiB);
  const ProcessReplay tight = run(step, 128_MiB);
  REQUIRE(tight.completed());
  CHECK(tight.reserved <= 128_MiB);
  CHECK(tight.releases > 0);
  int second = 0;
  for (std::size_t i = 0; i < step.engines.size(); ++i) {
    if (step.engines[i].empty()) continue;
    CHECK(roomy.engine[i] == 0);
    CHECK(tight.engine[i] == 1);
    ++second;
  }
  CHECK(second == 8);
}

TEST_CASE("a buffer of the runtime comes with its first use and stays") {
  const SizedStep step = sized(testing::described(testing::one_layer), 1, {});
  const ProcessReplay without = run(step);
  const ProcessReplay with = run(
      step, plenty, {{.name = "cuBLAS workspace", .bytes = 32_MiB, .first_use = NodeId::of(0)}});
  CHECK(with.loaded.reserved == without.loaded.reserved);
  CHECK(with.reserved == without.reserved + 32_MiB);
  const ProcessReplay resident = run(step, plenty, {{.name = "kept", .bytes = 32_MiB}});
  CHECK(resident.loaded.reserved == without.loaded.reserved + 32_MiB);
}

TEST_CASE("inference has no state to make: its second step asks for nothing") {
  const SizedStep step = sized(testing::shipped("resnet18"), 2, 1_MiB, "sgd", Mode::inference);
  const ProcessReplay replay = run(step);
  CHECK(replay.steps == 2);
  CHECK(replay.steady.reserved == replay.first_step.reserved);
}

TEST_CASE("check says where it fails, in PyTorch's words, and what would do") {
  Card card = generic_card(1_GiB);
  card.context = 300_MiB;
  const SizedStep step = sized(testing::shipped("resnet50"), 8, 1_MiB);
  const CheckReport report = check(step, card, {});
  REQUIRE_FALSE(report.fits);
  REQUIRE(report.run.failure.has_value());
  CHECK(report.run.failure->at.step >= 1);
  CHECK(report.run.failure->message.find("while " + report.run.failure->node +
                                         " runs: CUDA out of memory. "
                                         "Tried to allocate ") != std::string::npos);
  CHECK(report.device_bytes > report.available_bytes);
}

TEST_CASE("a fraction of the card that is too small fails beside plenty of free memory") {
  const SizedStep step = sized(testing::shipped("resnet50"), 8, 1_MiB);
  const Card card = generic_card(24_GiB);
  const CheckReport free = check(step, card, {});
  CheckSettings settings;
  settings.allocator.memory_fraction = 0.02;
  const CheckReport report = check(step, card, settings);
  CHECK(free.fits);
  CHECK_FALSE(report.fits);
  CHECK_FALSE(completes(step, card, settings));
  REQUIRE(report.run.failure.has_value());
  CHECK(report.run.failure->message.find("491.52 MiB allowed;") != std::string::npos);
  CHECK(report.headroom > 0_B);
  CHECK(report.device_bytes == free.device_bytes);
}

}  // namespace stowage
