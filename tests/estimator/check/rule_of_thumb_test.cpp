// The heuristic of CS231n, worked out by hand for small networks.
#include "estimator/check/rule_of_thumb.hpp"

#include <doctest/doctest.h>

#include "estimator/document/make_document.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

constexpr const char* net = R"(model: net
inputs:
  x: {shape: [batch, 3, 8, 8]}
  y: {shape: [batch], dtype: int64}
layers:
  - conv2d: {name: conv, from: x, channels: 4, kernel: 3, padding: 1}
  - relu: {in_place: true}
  - flatten
  - linear: {name: fc, features: 10}
loss:
  cross_entropy: {from: [fc, y]}
)";

Result<RuleOfThumb> rule_of(const ModelGraph& model, Mode mode, std::int64_t batch) {
  const auto chosen = choose_step(model, {.mode = mode});
  REQUIRE(chosen.has_value());
  const auto document = make_document(model, *chosen, Runtime::pytorch, std::nullopt);
  REQUIRE(document.has_value());
  return rule_of_thumb(*document, batch);
}

}  // namespace

TEST_CASE("activations twice, parameters three times, inputs once") {
  const ModelGraph model = testing::described(net);
  const std::int64_t activations = 4 * (4 * 8 * 8 + 10);  // in-place relu, flatten: none
  const std::int64_t parameters = 4 * (4 * 27 + 4 + 256 * 10 + 10);
  const std::int64_t inputs = 4 * 3 * 8 * 8 + 8;
  const auto training = rule_of(model, Mode::train, 5);
  REQUIRE(training.has_value());
  CHECK(training->activations == Bytes(2 * 5 * activations));
  CHECK(training->parameters == Bytes(3 * parameters));
  CHECK(training->miscellaneous == Bytes(5 * inputs));
  CHECK(training->total() == Bytes(10 * activations + 3 * parameters + 5 * inputs));
  const auto inference = rule_of(model, Mode::inference, 5);
  REQUIRE(inference.has_value());
  CHECK(inference->activations == Bytes(5 * activations));
  CHECK(inference->parameters == Bytes(parameters));
}

TEST_CASE(
    "the rule's example: VGG-16 has 15.2 million values an image beside its 138 million "
    "parameters") {
  const auto rule = rule_of(testing::shipped("vgg16"), Mode::inference, 1);
  REQUIRE(rule.has_value());
  CHECK(rule->parameters == Bytes(4LL * 138'357'544));
  // Convolutions, pools, fully connected layers, and torchvision's average pool of size 7.
  const std::int64_t stages = 2 * 3'211'264 + 802'816 + 2 * 1'605'632 + 401'408 + 3 * 802'816 +
                              200'704 + 3 * 401'408 + 100'352 + 3 * 100'352 + 25'088;
  CHECK(rule->activations == Bytes(4 * (stages + 25'088 + 4096 + 4096 + 1000)));
}

}  // namespace stowage
