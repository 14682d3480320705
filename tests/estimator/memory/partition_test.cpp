#include "estimator/memory/partition.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "estimator/check/check.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "tests/support/described_model.hpp"
#include "tests/support/zero_estimate.hpp"

namespace stowage {

namespace {

SizedStep sized_model(const std::string& model, const DataParallel& parallel, Precision precision) {
  LoweringSettings settings{
      .kernels = KernelSet::pytorch, .optimizer = {.name = "adamw"}, .parallel = parallel};
  if (has_master_weights(precision)) settings.optimizer.master_weights = MasterWeights::weights;
  const auto source = rule_workspace_source(8.0);
  auto step = size_step(
      testing::lowered(testing::shipped(model, {.precision = precision}), settings), 1, *source);
  REQUIRE(step.has_value());
  return *std::move(step);
}

Bytes of_class(const SizedStep& step, StorageClass storage_class) {
  Bytes bytes;
  for (std::size_t i = 0; i < step.storage_bytes.size(); ++i) {
    if (step.graph->storages[i].storage_class == storage_class) bytes += step.storage_bytes[i];
  }
  return bytes;
}

struct States {
  double parameters, gradients, optimizer_state;
};

States states(const SizedStep& step) {
  const auto bytes = [&](StorageClass storage_class) {
    return static_cast<double>(of_class(step, storage_class).count());
  };
  return {bytes(StorageClass::parameter), bytes(StorageClass::gradient),
          bytes(StorageClass::optimizer_state)};
}

}  // namespace

TEST_CASE("what a GPU keeps of the states is the ZeRO paper's share") {
  const States whole = states(sized_model("gpt2", {}, Precision::mixed_bf16));
  CHECK(whole.optimizer_state == doctest::Approx(6 * whole.parameters).epsilon(1e-5));
  for (int stage = 0; stage <= 3; ++stage) {
    CAPTURE(stage);
    const States kept =
        states(sized_model("gpt2", {.gpus = 4, .zero = stage}, Precision::mixed_bf16));
    const auto share = [&](int from) { return stage >= from ? 0.25 : 1.0; };
    const testing::StateBytes a_parameter{whole.parameters, whole.gradients, whole.optimizer_state};
    CHECK(kept.parameters + kept.gradients + kept.optimizer_state ==
          doctest::Approx(testing::zero_paper_bytes(1, {.gpus = 4, .zero = stage}, a_parameter))
              .epsilon(0.005));
    // A share is rounded up; parameters below the persistence threshold stay whole.
    CHECK(kept.optimizer_state == doctest::Approx(whole.optimizer_state * share(1)).epsilon(1e-5));
    CHECK(kept.gradients == doctest::Approx(whole.gradients * share(2)).epsilon(1e-5));
    CHECK(kept.parameters == doctest::Approx(whole.parameters * share(3)).epsilon(0.005));
  }
}

TEST_CASE("one GPU has nobody to share with, nor has an inference buckets") {
  CHECK(
      parallel_buffers(*sized_model("mlp", {.gpus = 1, .zero = 2}, Precision::fp32).graph).empty());
  CHECK(sized_model("mlp", {.gpus = 1, .zero = 3}, Precision::fp32).storage_bytes ==
        sized_model("mlp", {}, Precision::fp32).storage_bytes);
}

TEST_CASE("DDP keeps the gradients once more") {
  const SizedStep step = sized_model("mlp", {.gpus = 2}, Precision::fp32);
  const auto buffers = parallel_buffers(*step.graph);
  REQUIRE(buffers.size() == 1);
  CHECK(buffers[0].name == "DDP's gradient buckets");
  CHECK(buffers[0].bytes == of_class(step, StorageClass::gradient));
}

TEST_CASE("DeepSpeed's buffers are cut at their defaults") {
  const auto at = [](int stage) {
    return parallel_buffers(
        *sized_model("gpt2-xl", {.gpus = 4, .zero = stage}, Precision::mixed_bf16).graph);
  };
  REQUIRE(at(2).size() == 1);
  CHECK(at(2)[0].bytes == Bytes(2 * zero_reduce_bucket_elements));
  REQUIRE(at(3).size() == 2);
  CHECK(at(3)[1].name == "gathered parameters");
  CHECK(at(3)[1].bytes.count() == doctest::Approx(2.0 * zero_max_live_parameters).epsilon(0.001));
}

TEST_CASE("a gradient of which a share is kept is whole while it is made") {
  const SizedStep step = sized_model("mlp", {.gpus = 4, .zero = 2}, Precision::fp32);
  const StepMemory memory = step_memory(step, {});
  Bytes kept, made;
  for (std::size_t i = 0; i < memory.entries.size(); ++i) {
    if (memory.entries[i].storage_class != StorageClass::gradient) continue;
    const auto id = memory.entries[i].storage;
    const bool first = std::none_of(memory.entries.begin(),
                                    memory.entries.begin() + static_cast<std::ptrdiff_t>(i),
                                    [&](const MemoryEntry& entry) { return entry.storage == id; });
    (first ? kept : made) += memory.entries[i].exact;
    if (!first) CHECK(memory.uses[i].touches.front() == memory.uses[i].touches.back());
  }
  CHECK(kept + made == of_class(sized_model("mlp", {}, Precision::fp32), StorageClass::gradient));
  CHECK(made > kept);
}

TEST_CASE("check says what NCCL takes, and a later stage never takes more") {
  const Card card = generic_card(80_GiB, 8.0);
  Bytes before{std::int64_t{1} << 60};
  for (const int stage : {1, 2}) {
    const SizedStep step = sized_model("gpt2", {.gpus = 4, .zero = stage}, Precision::mixed_bf16);
    const CheckReport report = check(step, card, {});
    CHECK(report.fits);
    CHECK(report.tensor_bytes() <= before);
    before = report.tensor_bytes();
    CHECK(std::any_of(report.runtime_rows.begin(), report.runtime_rows.end(),
                      [](const RuntimeRow& row) { return row.name == "NCCL"; }));
  }
}

}  // namespace stowage
