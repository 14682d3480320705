#include "estimator/runtime/tensorflow_replay.hpp"

#include <doctest/doctest.h>

#include "estimator/runtime/process_overhead.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "tests/support/described_model.hpp"
#include "tests/support/one_layer.hpp"

namespace stowage {

namespace {

SizedStep sized_at(const ModelGraph& model, std::int64_t batch) {
  const auto source = rule_workspace_source(7.5);
  auto step = size_step(testing::lowered(model, {.kernels = kernel_set_of(Runtime::tensorflow),
                                                 .optimizer = {.name = "adam"}}),
                        batch, *source);
  REQUIRE(step.has_value());
  return *std::move(step);
}

TensorFlowReplay run_tensorflow(const SizedStep& step, Bytes total,
                                const TensorFlowMemory& memory) {
  const TensorFlowCard card{
      .total = total, .in_use = {}, .context = 100_MiB, .compute_capability_major = 7};
  return replay_tensorflow(
      step, storage_touches(*step.graph), {},
      library_loads(*step.graph, generic_card(1_GiB), {.runtime = Runtime::tensorflow}), card,
      memory);
}

std::string message_of(const SizedStep& step, const TensorFlowReplay& replay) {
  REQUIRE(replay.failure() != nullptr);
  return tensorflow_message(*step.graph, *replay.failure());
}

}  // namespace

TEST_CASE(
    "a growing pool holds weight and moments when loaded, the gradient brings the next region") {
  const SizedStep step = sized_at(testing::described(testing::one_layer), 1);
  const TensorFlowReplay replay = run_tensorflow(step, 1_GiB, {.allow_growth = true});
  REQUIRE(replay.completed());
  REQUIRE(replay.replicas.size() == 1);
  const ProcessReplay& process = replay.replicas.front();
  // Regions of 4, 4 and 8 MiB for three tensors of 4 MiB, then one of 16.
  CHECK(process.loaded.allocated == 12_MiB);
  CHECK(process.loaded.reserved == 16_MiB);
  CHECK(process.reserved == 32_MiB);
  CHECK(process.steps == 2);
  // 1,024 less the context, and 225 for others.
  CHECK(replay.limits == std::vector<Bytes>{699_MiB});
}

TEST_CASE("without growth the whole limit is taken when the first variable is made") {
  const SizedStep step = sized_at(testing::described(testing::one_layer), 1);
  const TensorFlowReplay replay = run_tensorflow(step, 1_GiB, {.logical_devices = {64_MiB}});
  REQUIRE(replay.completed());
  CHECK(replay.replicas.front().loaded.reserved == 64_MiB);
  CHECK(replay.pools() == 64_MiB);
}

TEST_CASE("a pool taken whole leaves cuBLAS no room, as TensorFlow says it") {
  const SizedStep step = sized_at(testing::described(testing::one_layer), 1);
  const TensorFlowMemory memory{.logical_devices = {64_MiB}};
  CHECK(message_of(step, run_tensorflow(step, 200_MiB, memory)) ==
        "in step 1, while fc.forward runs: failed to create cublas handle: "
        "CUBLAS_STATUS_NOT_INITIALIZED (cuBLAS wants 64.0 MiB, and 36.0 MiB are left)");
  CHECK(run_tensorflow(step, 228_MiB, memory).completed());
  const TensorFlowReplay growing =
      run_tensorflow(step, 200_MiB, {.logical_devices = {64_MiB}, .allow_growth = true});
  CHECK(growing.completed());
  CHECK(growing.pools() == 32_MiB);
}

TEST_CASE("a convolution wants cuDNN before a product wants cuBLAS") {
  const SizedStep step = sized_at(testing::shipped("mnist-cnn"), 8);
  CHECK(message_of(step, run_tensorflow(step, 240_MiB, {.logical_devices = {128_MiB}})) ==
        "in step 1, while conv1.forward runs: Could not create cudnn handle: "
        "CUDNN_STATUS_INTERNAL_ERROR (cuDNN wants 64.0 MiB, and 12.0 MiB are left)");
}

TEST_CASE("a pool that is too small fails in TensorFlow's words") {
  const SizedStep step = sized_at(testing::described(testing::one_layer), 1);
  CHECK(message_of(step, run_tensorflow(step, 1_GiB, {.logical_devices = {8_MiB}})) ==
        "before the first step: Allocator (GPU_0_bfc) ran out of memory trying to allocate 4.00MiB "
        "(rounded to 4194304)");
}

TEST_CASE("without room for the context there is no device") {
  const SizedStep step = sized_at(testing::described(testing::one_layer), 1);
  const TensorFlowReplay replay = run_tensorflow(step, 64_MiB, {});
  CHECK(message_of(step, replay) ==
        "before the first step: failed call to cuInit: CUDA_ERROR_OUT_OF_MEMORY: out of memory "
        "(CUDA wants 100.0 MiB, and 64.0 MiB are left)");
  CHECK(replay.limits.empty());
}

TEST_CASE("virtual GPUs have a pool each, taken before the libraries that they share") {
  const SizedStep step = sized_at(testing::described(testing::one_layer), 1);
  const TensorFlowMemory two{.logical_devices = {32_MiB, 32_MiB}};
  const TensorFlowReplay replay = run_tensorflow(step, 228_MiB, two);
  REQUIRE(replay.completed());
  CHECK(replay.replicas.size() == 2);
  CHECK(replay.pools() == 64_MiB);
  CHECK(replay.replicas[0].steady.allocated == replay.replicas[1].steady.allocated);
  CHECK(message_of(step, run_tensorflow(step, 226_MiB, two)) ==
        "in step 1, while fc.forward runs: failed to create cublas handle: "
        "CUBLAS_STATUS_NOT_INITIALIZED (cuBLAS wants 64.0 MiB, and 62.0 MiB are left)");
}

TEST_CASE("the room of a pool is what it takes, or what libraries leave it") {
  const SizedStep step = sized_at(testing::described(testing::one_layer), 1);
  const std::vector<LibraryLoad> libraries =
      library_loads(*step.graph, generic_card(1_GiB), {.runtime = Runtime::tensorflow});
  REQUIRE(libraries.size() == 1);
  const auto room = [&](Bytes total, const TensorFlowMemory& memory) {
    return tensorflow_room(
        libraries,
        {.total = total, .in_use = {}, .context = 100_MiB, .compute_capability_major = 7}, memory);
  };
  CHECK(room(1_GiB, {.logical_devices = {64_MiB}}) == 64_MiB);
  CHECK(room(1_GiB, {.logical_devices = {64_MiB, 32_MiB}}) == 32_MiB);
  CHECK(room(200_MiB, {.logical_devices = {64_MiB}}) < 0_B);
  CHECK(room(200_MiB, {.logical_devices = {64_MiB}, .allow_growth = true}) == 36_MiB);
  CHECK(room(64_MiB, {}) < 0_B);
}

}  // namespace stowage
