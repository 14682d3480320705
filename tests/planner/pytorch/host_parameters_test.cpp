// Which parameters are updated on the CPU, and what has to cross for that.
#include "planner/pytorch/host_parameters.hpp"

#include <doctest/doctest.h>

#include <memory>

#include "estimator/document/make_document.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

constexpr const char* uneven_layers = R"(model: net
inputs: {x: {shape: [batch, 128]}, t: {shape: [batch], dtype: int64}}
layers:
  - linear: {name: a, from: x, features: 256}
  - relu: {name: act}
  - linear: {name: b, features: 256}
  - linear: {name: head, features: 10}
loss: {cross_entropy: {from: [head, t]}}
)";

SizedStep uneven_step() {
  const ChosenStep step{
      .lowering = {.kernels = KernelSet::pytorch, .optimizer = {.name = "adamw"}}};
  const StepDocument document =
      make_document(testing::described(uneven_layers), step, Runtime::pytorch, {}, step_alone)
          .value();
  return size_step(document.graph, 8, *rule_workspace_source(8.6)).value();
}

}  // namespace

TEST_CASE("large parameters move first whose gradients are whole first") {
  const SizedStep step = uneven_step();
  const ParameterUpdates updates = parameter_updates(*step.graph).value();
  // By ParameterId: weights and biases of a, b, head. The head's weight has 10 KiB.
  CHECK(host_parameters(step, updates) ==
        std::vector<ParameterId>{ParameterId::of(2), ParameterId::of(0)});
}

TEST_CASE(
    "a bound on what crosses: state, gradient and temporaries leave for a byte twice across") {
  const SizedStep step = uneven_step();
  const ParameterUpdates updates = parameter_updates(*step.graph).value();
  CHECK(host_updates_bound(step, updates, Bytes()) == Bytes());
  // adamw: two states, the gradient and foreach's temporaries take at least 4 bytes for one.
  const Bytes bound = host_updates_bound(step, updates, 512_KiB);
  CHECK(bound > Bytes());
  CHECK(bound <= 256_KiB);
  CHECK(host_updates_bound(step, updates, 256_KiB) < bound);
  // What no parameter can make room for, saved tensors have to.
  CHECK(host_updates_bound(step, updates, 512_MiB) > 1000_MiB);
}

}  // namespace stowage
