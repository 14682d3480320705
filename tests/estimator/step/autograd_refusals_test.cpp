// Steps that autograd refuses, as PyTorch 2.15 was seen to.
#include "estimator/step/autograd_refusals.hpp"

#include <doctest/doctest.h>

#include <string>

#include "estimator/step/lower.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

std::string description(const std::string& layers) {
  return "model: m\n"
         "inputs: {x: {shape: [batch, 4]}, y: {shape: [batch, 4]}}\n"
         "layers:\n"
         "  - linear: {name: stem, from: x, features: 4}\n" +
         layers +
         "  - linear: {name: head, features: 4}\n"
         "loss: {mse: {from: [head, y]}}\n";
}

std::string autograd_refusal(const std::string& text, KernelSet kernels = KernelSet::pytorch,
                             Mode mode = Mode::train) {
  const auto step = lower(testing::described(text), {.kernels = kernels, .mode = mode});
  return step ? "" : render(step.error());
}

bool refused(const std::string& layers) { return !autograd_refusal(description(layers)).empty(); }

}  // namespace

TEST_CASE("what is kept for backward is not overwritten") {
  const std::string twice =
      description("  - sigmoid: {name: s}\n  - relu: {name: r, in_place: true}\n");
  CHECK(autograd_refusal(twice) ==
        "test.yaml:6:5: error: 'r' may not overwrite what 's' keeps for its backward pass\n"
        "    - relu: {name: r, in_place: true}\n"
        "      ^~~~\n"
        "  PyTorch refuses this too; leave out 'in_place'\n"
        "test.yaml:5:5: note: 's' is here\n"
        "    - sigmoid: {name: s}\n"
        "      ^~~~~~~\n");
  CHECK(autograd_refusal(twice, KernelSet::stowage).empty());
  CHECK(autograd_refusal(twice, KernelSet::pytorch, Mode::inference).empty());
}

TEST_CASE("the same in-place operators as PyTorch's autograd are refused") {
  const std::string in_place = ": {in_place: true}\n";
  for (const char* op : {"relu", "leaky_relu", "elu"}) {
    CAPTURE(op);
    const std::string line = "  - " + (op + in_place);
    CHECK(!refused(line));
    CHECK(refused(line + line));
  }
  for (const char* op : {"silu", "hardswish", "relu6", "dropout"}) {
    CAPTURE(op);
    const std::string line = "  - " + (op + in_place);
    CHECK(!refused(line + line));
  }
  CHECK(refused("  - relu\n  - dropout" + in_place));
  CHECK(refused("  - relu: {name: r}\n  - add: {from: [r, stem], in_place: true}\n"));
  CHECK(!refused("  - batch_norm\n  - relu" + in_place));
  // Its input, which another has kept before it runs.
  CHECK(
      refused("  - gelu: {name: g}\n  - relu: {name: r, from: stem, in_place: true}\n"
              "  - add: {from: [g, r]}\n"));
}

TEST_CASE("a parameter that trains is not overwritten") {
  const std::string text = description(
      "  - parameter: {name: p, shape: [4]}\n  - relu: {name: r, in_place: true}\n"
      "  - add: {from: [stem, r]}\n");
  CHECK(autograd_refusal(text).find("error: 'r' may not overwrite 'p.weight': it is trained\n") !=
        std::string::npos);
}

TEST_CASE("something must train") {
  std::string text = description("");
  for (const std::string name : {"name: stem", "name: head"}) {
    text.replace(text.find(name), name.size(), name + ", frozen: true");
  }
  const std::string message =
      "error: nothing of the model 'm' is trained: no parameter that may change leads to its "
      "loss\n  run the model forward alone\n";
  CHECK(autograd_refusal(text) == message);
  CHECK(autograd_refusal(text, KernelSet::stowage) == message);
  CHECK(autograd_refusal(text, KernelSet::stowage, Mode::inference).empty());
}

}  // namespace stowage
