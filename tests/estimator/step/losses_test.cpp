// Several losses: their sum, their gradients, and what inference leaves out.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "estimator/model/operator_row.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

constexpr const char* with_auxiliary = R"(
model: two-heads
arguments: {auxiliary: true}
inputs:
  x: {shape: [batch, 8]}
  label: {shape: [batch], dtype: int64}
layers:
  - linear: {name: stem, features: 16}
  - linear: {name: aux_hidden, from: stem, features: 4}
  - linear: {name: aux, features: 10}
  - linear: {name: fc, from: stem, features: 10}
loss:
  - cross_entropy: {from: [fc, label]}
  - cross_entropy: {from: [aux, label], weight: 0.4, when: auxiliary}
)";

std::vector<std::string> node_names(const StepGraph& graph, Phase phase) {
  std::vector<std::string> names;
  for (const KernelNode& node : graph.nodes) {
    if (node.phase == phase) names.push_back(node.name);
  }
  return names;
}

}  // namespace

TEST_CASE("a list of losses: the model's loss is their weighted sum") {
  const ModelGraph model = testing::described(with_auxiliary);
  REQUIRE(model.operators.size() == 7);
  CHECK(model.operators.back().name == "loss");
  CHECK(model.operators.back().outputs[0] == model.loss);
  CHECK(model.tensor(model.output).name == "fc");
  CHECK(model.tensor(model.loss).type.shape.empty());
  const auto pytorch = testing::lowered(model, {.kernels = KernelSet::pytorch});
  CHECK(node_names(*pytorch, Phase::loss) ==
        std::vector<std::string>{"loss_1.log_softmax", "loss_1.nll_loss", "loss_2.log_softmax",
                                 "loss_2.nll_loss", "loss_2.weighted", "loss.forward"});
  for (const TensorView& gradient : pytorch->gradients) CHECK(gradient.storage.valid());
}

TEST_CASE("our executor's backward kernels take the weight and the micro-batches as one number") {
  const ModelGraph model = testing::described(with_auxiliary);
  const auto step = testing::lowered(model, {.kernels = KernelSet::stowage, .micro_batches = 2});
  std::vector<double> scales;
  for (const KernelNode& node : step->nodes) {
    if (node.kernel != Kernel::cross_entropy_backward || node.micro_batch != 0) continue;
    scales.push_back(node.attributes.real("scale"));
  }
  REQUIRE(scales.size() == 2);
  CHECK(scales[0] == doctest::Approx(0.2));
  CHECK(scales[1] == doctest::Approx(0.5));
  CHECK(step->losses.size() == 2);
}

TEST_CASE("inference runs neither losses nor what leads to them alone") {
  const ModelGraph model = testing::described(with_auxiliary);
  for (const KernelSet kernels : {KernelSet::pytorch, KernelSet::stowage}) {
    const auto step = testing::lowered(model, {.kernels = kernels, .mode = Mode::inference});
    CHECK(node_names(*step, Phase::forward) ==
          std::vector<std::string>{"stem.forward", "fc.forward"});
    CHECK(step->nodes.size() == 2);
  }
}

TEST_CASE("a loss that is left out leaves one, which needs no sum") {
  std::string text = with_auxiliary;
  text.replace(text.find("auxiliary: true"), 15, "auxiliary: false");
  const ModelGraph model = testing::described(text);
  CHECK(model.operators.back().name == "loss_1");
  CHECK(model.operators.back().outputs[0] == model.loss);
}

}  // namespace stowage
