// Evaluation between two training steps: what the training leaves on the card, and what fits
// beside.
#include "estimator/check/evaluation.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "estimator/workspace/rule_workspace_source.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

struct Setting {
  std::shared_ptr<const StepGraph> evaluating;
  SizedStep training;
};

Setting setting(const std::string& name, const OptimizerSettings& optimizer, std::int64_t batch,
                WorkspaceSource& source) {
  const ModelGraph model = testing::shipped(name);
  const auto graph =
      testing::lowered(model, {.kernels = KernelSet::pytorch, .optimizer = optimizer});
  auto step = size_step(graph, batch, source);
  REQUIRE(step.has_value());
  return {testing::lowered(model, {.kernels = KernelSet::pytorch, .mode = Mode::inference}),
          *std::move(step)};
}

Bytes of_class(const std::vector<RuntimeBuffer>& left, StorageClass storage_class) {
  Bytes bytes;
  for (const RuntimeBuffer& row : left) {
    if (row.storage_class == storage_class) bytes += row.bytes;
  }
  return bytes;
}

}  // namespace

TEST_CASE("training leaves its optimizer state, inputs and results, and no gradients") {
  const Card card = generic_card(8_GiB);
  const auto rules = rule_workspace_source(card.compute_capability);
  WorkspaceSource& source = *rules;
  const Setting adam = setting("mlp", {.name = "adam"}, 32, source);
  const std::vector<RuntimeBuffer> left = left_by_training(adam.training, Runtime::ideal);
  CHECK(of_class(left, StorageClass::optimizer_state) == Bytes(2 * 4 * 1'863'690));
  CHECK(of_class(left, StorageClass::input) == Bytes(32 * (784 * 4 + 8)));
  CHECK(of_class(left, StorageClass::activation) == Bytes(32 * 10 * 4 + 4));  // output and loss
  CHECK(of_class(left, StorageClass::gradient) == Bytes());
  CHECK(of_class(left, StorageClass::parameter) == Bytes());
  const Setting sgd = setting("mlp", {.name = "sgd"}, 32, source);
  CHECK(of_class(left_by_training(sgd.training, Runtime::ideal), StorageClass::optimizer_state) ==
        Bytes());
}

TEST_CASE("an evaluation's peak is an inference's and what training left") {
  const Card card = generic_card(8_GiB);
  const auto rules = rule_workspace_source(card.compute_capability);
  WorkspaceSource& source = *rules;
  const Setting adam = setting("mlp", {.name = "adam"}, 32, source);
  const CheckSettings ideal{.runtime = Runtime::ideal};
  const auto evaluation =
      check_evaluation(adam.training, adam.evaluating, 1000, card, ideal, source);
  REQUIRE(evaluation.has_value());
  const auto alone = size_step(adam.evaluating, 1000, source);
  REQUIRE(alone.has_value());
  Bytes left;
  for (const RuntimeBuffer& row : left_by_training(adam.training, Runtime::ideal)) {
    left += row.bytes;
  }
  CHECK(evaluation->step.tensor_bytes() == check(*alone, card, ideal).tensor_bytes() + left);
  CHECK(evaluation->step.fits);
}

TEST_CASE("the largest chunk fits and one more does not") {
  const Card card = generic_card(1_GiB);
  const auto rules = rule_workspace_source(card.compute_capability);
  WorkspaceSource& source = *rules;
  const Setting adam = setting("mnist-cnn", {.name = "adam"}, 64, source);
  const auto evaluation =
      check_evaluation(adam.training, adam.evaluating, 28'000, card, {}, source);
  REQUIRE(evaluation.has_value());
  CHECK_FALSE(evaluation->step.fits);
  REQUIRE(evaluation->chunk.batch > 0);
  for (const std::int64_t more : {0, 1}) {
    const auto chunk = check_evaluation(adam.training, adam.evaluating,
                                        evaluation->chunk.batch + more, card, {}, source);
    REQUIRE(chunk.has_value());
    CHECK(chunk->step.fits == (more == 0));
  }
}

TEST_CASE("training and evaluation together: the larger peak counts, both must fit") {
  const Card card = generic_card(1_GiB);
  const auto rules = rule_workspace_source(card.compute_capability);
  WorkspaceSource& source = *rules;
  const Setting adam = setting("mnist-cnn", {.name = "adam"}, 64, source);
  const CheckReport training = check(adam.training, card, {});
  REQUIRE(training.fits);
  for (const std::int64_t batch : {1, 28'000}) {
    CAPTURE(batch);
    const auto evaluation =
        check_evaluation(adam.training, adam.evaluating, batch, card, {}, source);
    REQUIRE(evaluation.has_value());
    const CheckReport both = with_evaluation(training, *evaluation);
    CHECK(both.device_bytes == std::max(training.device_bytes, evaluation->step.device_bytes));
    CHECK(both.fits == (batch == 1));
    CHECK((both.headroom >= Bytes()) == both.fits);
    CHECK(both.phases.size() == training.phases.size() + 1);
    CHECK(both.phases.back().device_bytes == evaluation->step.device_bytes);
    CHECK(both.culprit.empty() == both.fits);
  }
}

}  // namespace stowage
