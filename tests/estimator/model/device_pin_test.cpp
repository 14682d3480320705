#include "estimator/model/device_pin.hpp"

#include <doctest/doctest.h>

#include "estimator/model/load_model.hpp"

namespace stowage {

namespace {

std::string parsed(std::string_view pattern, std::string_view side) {
  const auto pin = parse_device_pin(pattern, side);
  return pin ? to_string(*pin) : render(pin.error());
}

std::string described_pins(const std::string& pins) {
  const auto model = load_model(std::make_shared<const SourceText>(SourceText{
      "net.yaml", "model: net\ninputs: {x: {shape: [batch, 4]}}\nlayers: [relu]\npins:" + pins}));
  if (!model) return render(model.error());
  std::string text;
  for (const DevicePin& pin : model->pins) {
    text += to_string(pin) + " at line " + std::to_string(pin.span.line) + "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("a pin is a scope, a class or an operator, and a side") {
  CHECK(parsed("encoder.*", "cpu") == "encoder.*=cpu");
  CHECK(parsed("class:parameter", "cpu") == "class:parameter=cpu");
  CHECK(parsed("op:embedding", "gpu") == "op:embedding=gpu");
  CHECK(parse_device_pin("op:embedding", "cpu")->pattern == "embedding");
  CHECK(parse_device_pin("class:buffer", "cpu")->target == PinTarget::storage_class);
}

TEST_CASE("sides are also read as TensorFlow and PyTorch write them") {
  for (const char* side : {"gpu", "GPU", "/gpu:0", "/device:GPU:0", "cuda", "cuda:0"}) {
    CAPTURE(side);
    CHECK(parsed("a", side) == "a=gpu");
  }
  for (const char* side : {"cpu", "/device:CPU:0", "/cpu:0", "host"}) {
    CAPTURE(side);
    CHECK(parsed("a", side) == "a=cpu");
  }
}

TEST_CASE("a pin that says nothing, or names no device, is refused") {
  CHECK(parsed("", "cpu") ==
        "error: the pin '=cpu' names nothing\n"
        "  a pin is SCOPE=cpu, class:NAME=cpu or op:NAME=cpu\n");
  CHECK(parsed("class:", "cpu").find("the pin 'class:=cpu' names nothing") != std::string::npos);
  CHECK(parsed("a", "").find("'a' is pinned to '', which is no device") != std::string::npos);
  CHECK(parsed("a", "/gpu:1") ==
        "error: 'a' is pinned to '/gpu:1', which is no device of a plan\n"
        "  a plan has one GPU and its host: cpu or gpu\n");
  CHECK(parsed(std::string(257, 'x'), "cpu").find("257 bytes long, more than 256") !=
        std::string::npos);
}

TEST_CASE("wildcards: '*' is any characters, '?' is one") {
  CHECK(fits_pattern("encoder.layer.0", "encoder.*"));
  CHECK_FALSE(fits_pattern("encoder", "encoder.*"));
  CHECK(fits_pattern("encoder.layer.0.fc", "encoder.layer.?.fc"));
  CHECK_FALSE(fits_pattern("encoder.layer.10.fc", "encoder.layer.?.fc"));
  CHECK(fits_pattern("a.weight", "*.weight"));
  CHECK(fits_pattern("abcabc", "*abc"));
  CHECK(fits_pattern("", "*"));
  CHECK_FALSE(fits_pattern("", "?"));
  CHECK(fits_pattern("anything", "***"));
}

TEST_CASE("a hostile pattern takes length times length, not more") {
  std::string pattern;
  for (int i = 0; i < 100; ++i) pattern += "*a";
  pattern += "b";
  CHECK_FALSE(fits_pattern(std::string(100'000, 'a'), pattern));  // exponential: never ends
}

TEST_CASE("a description's pins keep their places") {
  CHECK(described_pins("\n  encoder.*: cpu\n  class:parameter: gpu\n  'op:*': cpu\n") ==
        "encoder.*=cpu at line 5\nclass:parameter=gpu at line 6\nop:*=cpu at line 7\n");
  CHECK(described_pins(" {a: tpu}\n") ==
        "net.yaml:4:8: error: 'a' is pinned to 'tpu', which is no device of a plan\n"
        "  pins: {a: tpu}\n"
        "         ^\n"
        "  a plan has one GPU and its host: cpu or gpu\n");
  CHECK(described_pins(" [a]\n").find("error") != std::string::npos);
  CHECK(described_pins("\n  a: [cpu]\n").find("entries such as 'encoder.*: cpu'") !=
        std::string::npos);
}

}  // namespace stowage
