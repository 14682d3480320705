// The keys of `train:` that say how a step runs.
#include <doctest/doctest.h>

#include <string>

#include "estimator/model/load_model.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

std::string with_train(const std::string& train) {
  return "model: m\n"
         "arguments: {parts: 4}\n"
         "inputs: {x: {shape: [batch, 4]}, y: {shape: [batch, 4]}}\n"
         "layers:\n"
         "  - linear: {name: a, from: x, features: 4}\n"
         "loss:\n"
         "  mse: {from: [a, y]}\n"
         "train: {" +
         train + "}\n";
}

std::string messages(const std::string& text) {
  const auto model =
      load_model(std::make_shared<const SourceText>(SourceText{"net.yaml", text}), {});
  return model ? std::string() : render(model.error());
}

}  // namespace

TEST_CASE("a description says how its step runs") {
  const ModelGraph model = testing::described(
      with_train("optimizer: adam, precision: amp-bf16, accumulation: 2 * parts, "
                 "zero_grad: to_zero, augment: 1, prefetch: 2, layout: nhwc"));
  CHECK(model.precision == Precision::amp_bf16);
  CHECK(model.accumulation == 8);
  CHECK(model.step == StepSettings{ZeroGrad::to_zero, 1, 2, TensorLayout::channels_last});
  const ModelGraph plain = testing::described(with_train("optimizer: adam"));
  CHECK(plain.precision == Precision::fp32);
  CHECK(plain.accumulation == 1);
  CHECK(plain.step == StepSettings{});
}

TEST_CASE("values that no step takes are refused at their place") {
  CHECK(messages(with_train("precision: amp-bf15")) ==
        "net.yaml:8:20: error: unknown precision 'amp-bf15'\n"
        "  train: {precision: amp-bf15}\n"
        "                     ^~~~~~~~\n"
        "  did you mean 'amp-bf16'?\n");
  CHECK(messages(with_train("zero_grad: [1]")) ==
        "net.yaml:8:20: error: 'zero_grad' takes a word, not a list\n"
        "  train: {zero_grad: [1]}\n"
        "                     ^\n"
        "  it is one of to_none, to_zero\n");
  CHECK(messages(with_train("layout: ncwh")) ==
        "net.yaml:8:17: error: unknown layout 'ncwh'\n"
        "  train: {layout: ncwh}\n"
        "                  ^~~~\n"
        "  did you mean 'nchw'?\n");
  CHECK(messages(with_train("accumulation: 0")) ==
        "net.yaml:8:23: error: 'accumulation' takes an integer between 1 and 1000000, not the "
        "number 0\n"
        "  train: {accumulation: 0}\n"
        "                        ^\n");
  CHECK(messages(with_train("augment: -1, prefetch: 1.5")) ==
        "net.yaml:8:18: error: 'augment' takes an integer between 0 and 1000, not the number -1\n"
        "  train: {augment: -1, prefetch: 1.5}\n"
        "                   ^~\n"
        "net.yaml:8:32: error: 'prefetch' takes an integer between 0 and 1000, not the number 1.5\n"
        "  train: {augment: -1, prefetch: 1.5}\n"
        "                                 ^~~\n");
}

TEST_CASE("a loss is not checkpointed, and a region is a condition") {
  std::string text = with_train("optimizer: sgd");
  text.replace(text.find("[a, y]"), 6, "[a, y], checkpoint: true");
  CHECK(messages(text) ==
        "net.yaml:7:35: error: a loss is not checkpointed\n"
        "    mse: {from: [a, y], checkpoint: true}\n"
        "                                    ^~~~\n"
        "  put 'checkpoint: true' on layers or blocks\n");
}

}  // namespace stowage
