// Gradients added up in float32 beside 16-bit parameters: 18 bytes a parameter under Adam.
#include <doctest/doctest.h>

#include "estimator/model/load_model.hpp"
#include "estimator/optimizer/optimizer_row.hpp"
#include "estimator/rewrite/lower_step.hpp"

namespace stowage {

namespace {

StepGraph lowered(MasterWeights masters, int micro_batches) {
  ModelOptions options;
  options.precision = Precision::bf16;
  const auto model =
      load_model(std::make_shared<const SourceText>(SourceText{
                     "net.yaml",
                     "model: net\n"
                     "inputs: {x: {shape: [batch, 4]}, t: {shape: [batch], dtype: int64}}\n"
                     "layers:\n"
                     "  - linear: {name: fc1, from: x, features: 8}\n"
                     "  - linear: {name: fc2, from: fc1, features: 3}\n"
                     "loss: {cross_entropy: {from: [fc2, t]}}\n"}),
                 options);
  if (!model) FAIL(render(model.error()));
  OptimizerSettings adam = *named_optimizer("adam");
  adam.master_weights = masters;
  const auto graph = lower_step(
      *model, {.kernels = KernelSet::pytorch, .optimizer = adam, .micro_batches = micro_batches});
  if (!graph) FAIL(render(graph.error()));
  return *graph;
}

constexpr std::int64_t elements = 4 * 8 + 8 + 8 * 3 + 3;
constexpr std::int64_t counters = 4 * 4;  // the fused kernel's, one a parameter tensor

/// Of what is there for the whole step, and of the gradients that are not.
std::pair<std::int64_t, std::int64_t> bytes_of(const StepGraph& graph) {
  std::int64_t kept = 0, gradients = 0;
  for (const Storage& storage : graph.storages) {
    if (storage.persistence == Persistence::persistent) {
      kept += storage.bytes.constant;
    } else if (storage.storage_class == StorageClass::gradient) {
      gradients += storage.bytes.constant;
    }
  }
  return {kept, gradients};
}

}  // namespace

TEST_CASE("masters of the weights alone: 16 bytes a parameter, gradients in 16 bits") {
  const auto [kept, gradients] = bytes_of(lowered(MasterWeights::weights, 1));
  CHECK(kept == (2 + 4 + 8) * elements + counters);
  CHECK(gradients == 2 * elements);
}

TEST_CASE("gradients in float32 as well: 18 bytes a parameter, the 16-bit ones let go at once") {
  const StepGraph graph = lowered(MasterWeights::weights_and_gradients, 1);
  const auto [kept, gradients] = bytes_of(graph);
  CHECK(kept == (2 + 4 + 4 + 8) * elements + counters);
  CHECK(gradients == 2 * elements);
  int added = 0;
  for (const KernelNode& node : graph.nodes) {
    if (node.kernel == Kernel::cast) ++added;
    if (node.phase != Phase::update) continue;
    for (const TensorView& view : node.reads) {
      const Storage& storage = graph.storage(view.storage);
      if (storage.storage_class != StorageClass::gradient) continue;
      CHECK_MESSAGE(view.type == DataType::float32, storage.name);
      CHECK_MESSAGE(storage.persistence == Persistence::persistent, storage.name);
    }
  }
  CHECK(added == 4);
  for (const TensorView& gradient : graph.gradients) CHECK(gradient.type == DataType::float32);
}

TEST_CASE("later micro-batches add to the float32 gradients; the first's 16-bit ones do not stay") {
  const StepGraph graph = lowered(MasterWeights::weights_and_gradients, 3);
  int sums = 0;
  for (const KernelNode& node : graph.nodes) {
    for (const TensorView& view : node.reads) {
      const Storage& storage = graph.storage(view.storage);
      const bool narrow = storage.storage_class == StorageClass::gradient &&
                          storage.persistence == Persistence::transient;
      // A 16-bit gradient is read where it was made, by the addition, and nowhere else.
      if (narrow) CHECK(node.phase == Phase::backward);
    }
    if (node.kernel != Kernel::accumulate) continue;
    CHECK(node.writes.front().type == DataType::float32);
    CHECK(node.reads.front().storage == node.writes.front().storage);
    CHECK(node.reads.back().type == DataType::bfloat16);
    ++sums;
  }
  CHECK(sums == 2 * 4);
}

TEST_CASE("float32 parameters need no master copies") {
  OptimizerSettings adam = *named_optimizer("adam");
  adam.master_weights = MasterWeights::weights_and_gradients;
  const auto model = load_model(std::make_shared<const SourceText>(
      SourceText{"net.yaml",
                 "model: net\ninputs: {x: {shape: [batch, 4]}, t: {shape: [batch], dtype: int64}}\n"
                 "layers:\n  - linear: {name: fc1, from: x, features: 3}\n"
                 "loss: {cross_entropy: {from: [fc1, t]}}\n"}));
  REQUIRE(model.has_value());
  const auto graph = lower_step(*model, {.kernels = KernelSet::pytorch, .optimizer = adam});
  REQUIRE(graph.has_value());
  for (const Storage& storage : graph->storages) {
    CHECK(storage.name.find("main_grad") == std::string::npos);
    CHECK(storage.name.find("master") == std::string::npos);
  }
}

}  // namespace stowage
