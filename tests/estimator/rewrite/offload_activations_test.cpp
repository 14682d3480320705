// Saved tensors that go to the host. That the step is TRL's is in tests/estimator/reference.
#include "estimator/rewrite/offload_activations.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "estimator/adapt/adapt.hpp"
#include "estimator/rewrite/lower_step.hpp"
#include "estimator/step/offloaded_bytes.hpp"

namespace stowage {

namespace {

const std::string chain = R"(model: chain
inputs: {x: {shape: [batch, 1024]}, y: {shape: [batch, 4]}}
layers:
  - linear: {name: fc, from: x, features: 1024, repeat: 8}
  - linear: {name: head, features: 4}
loss: {mse: {from: [head, y]}}
)";

Result<StepGraph> offloaded(const std::string& settings, int micro_batches = 1) {
  const auto model =
      load_adapted(std::make_shared<const SourceText>(SourceText{"chain.yaml", chain}),
                   {.fine_tuning = {.offload_activations = settings}});
  if (!model) return tl::unexpected(model.error());
  return lower_step(*model, {.kernels = KernelSet::pytorch, .micro_batches = micro_batches});
}

std::int64_t count_of(const StepGraph& step, std::string_view kernel) {
  return std::count_if(step.nodes.begin(), step.nodes.end(),
                       [&](const KernelNode& node) { return kernel_name(node) == kernel; });
}

/// The node in which the storage is let go.
std::string last_holder(const StepGraph& step, std::string_view storage) {
  std::string name;
  for (const KernelNode& node : step.nodes) {
    const auto is_it = [&](StorageId id) { return step.storage(id).name == storage; };
    const bool touches = std::any_of(node.holds.begin(), node.holds.end(), is_it) ||
                         std::any_of(node.reads.begin(), node.reads.end(),
                                     [&](const TensorView& view) { return is_it(view.storage); });
    if (touches) name = node.name;
  }
  return name;
}

}  // namespace

TEST_CASE("each layer's input goes to the host and comes back, but the head's") {
  const auto step = offloaded("streams=false");
  REQUIRE(step);
  CHECK(count_of(*step, offload_kernel) == 8);  // of the head's own, and 16 bytes of target, none
  CHECK(count_of(*step, fetch_kernel) == count_of(*step, offload_kernel));
  CHECK(offloaded_bytes(*step).at(2) >= 2 * 8 * 1024 * 4);
  const bool head_kept = std::any_of(step->saved.begin(), step->saved.end(), [&](const auto& one) {
    return step->layer(one.op) == "head" && one.role == "input";
  });
  CHECK(head_kept);
}

TEST_CASE("a stash keeps the tensors of as many saves") {
  const auto one = offloaded("stash=1");
  const auto five = offloaded("all");
  REQUIRE(one);
  REQUIRE(five);
  CHECK(last_holder(*one, "fc.2") != last_holder(*five, "fc.2"));
  CHECK(offloaded_bytes(*one) == offloaded_bytes(*five));
}

TEST_CASE("small tensors and parameters are not offloaded") {
  const auto none = offloaded("min_bytes=1000000");
  REQUIRE(none);
  CHECK(count_of(*none, offload_kernel) == 0);
  CHECK(offloaded_bytes(*none) == Affine(0));
}

TEST_CASE("every micro-batch offloads its own") {
  const auto step = offloaded("all", 3);
  const auto single = offloaded("all");
  REQUIRE(step);
  REQUIRE(single);
  CHECK(count_of(*step, offload_kernel) == 3 * count_of(*single, offload_kernel));
}

TEST_CASE("an inference and a plan's kernels offload nothing") {
  StepGraph step = *offloaded("all");
  step.settings.mode = Mode::inference;
  CHECK(with_offloaded_activations(step, {}, {}).error().front().message ==
        "an inference saves nothing to offload");
  step.settings.mode = Mode::train;
  step.settings.kernels = KernelSet::stowage;
  CHECK(with_offloaded_activations(step, {}, {}).error().front().message ==
        "the kernel set 'stowage' offloads nothing itself: a plan does");
}

}  // namespace stowage
