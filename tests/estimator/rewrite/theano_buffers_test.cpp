// What a Theano function keeps beside our own step's tensors, with bytes worked out by hand.
#include "estimator/rewrite/theano_buffers.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

const std::string dropped_network = R"(
model: m
inputs: {x: {shape: [batch, 4, 6, 6]}, y: {shape: [batch, 8, 6, 6]}}
layers:
  - conv2d: {name: first, from: x, channels: 16, kernel: 3, padding: 1, bias: false}
  - relu: {name: bend}
  - dropout: {name: drop, p: 0.5}
  - conv2d: {name: second, channels: 8, kernel: 3, padding: 1, bias: false}
loss:
  mse: {from: [second, y]}
train: {optimizer: sgd}
)";

StepGraph theano_step(const TheanoBuffers& buffers = {}, Mode mode = Mode::train) {
  const auto lowered = testing::lowered(testing::described(dropped_network),
                                        {.kernels = KernelSet::stowage, .mode = mode});
  auto step = with_theano_buffers(*lowered, buffers);
  REQUIRE(step.has_value());
  return *std::move(step);
}

const Storage* theano_storage(const StepGraph& step, const std::string& name) {
  const auto found = std::ranges::find(step.storages, name, &Storage::name);
  return found == step.storages.end() ? nullptr : &*found;
}

std::size_t theano_place(const StepGraph& step, const std::string& node) {
  const auto found = std::ranges::find(step.nodes, node, &KernelNode::name);
  REQUIRE(found != step.nodes.end());
  return static_cast<std::size_t>(found - step.nodes.begin());
}

/// The last node that reads or holds the storage.
std::string last_theano_user(const StepGraph& step, const std::string& storage) {
  std::string last;
  for (const KernelNode& node : step.nodes) {
    const auto is_it = [&](StorageId id) { return step.storage(id).name == storage; };
    const bool reads = std::ranges::any_of(
        node.reads, [&](const TensorView& view) { return is_it(view.storage); });
    if (reads || std::ranges::any_of(node.holds, is_it)) last = node.name;
  }
  return last;
}

}  // namespace

TEST_CASE("filters are copied for cuDNN, and the copies live until the inputs' gradients") {
  const StepGraph step = theano_step();
  const Storage* copy = theano_storage(step, "second.weight.contiguous");
  REQUIRE(copy != nullptr);
  CHECK(copy->bytes == Affine(std::int64_t{8} * 16 * 9 * 4));
  CHECK(last_theano_user(step, "second.weight.contiguous") == "second.backward.data");
  // Nothing asks for the gradient of the images.
  CHECK(last_theano_user(step, "first.weight.contiguous") == "first.forward");
  CHECK(theano_storage(step, "x.contiguous") == nullptr);
}

TEST_CASE("with channels last images and the gradients of results are copied too") {
  const StepGraph step = theano_step({.channels_last = true});
  const Storage* images = theano_storage(step, "x.contiguous");
  REQUIRE(images != nullptr);
  CHECK(images->bytes.at(3) == 3 * 4 * 36 * 4);
  CHECK(last_theano_user(step, "x.contiguous") == "first.backward.filter");
}

TEST_CASE("a rectifier keeps what goes in, and a dropout a mask of floats") {
  const StepGraph step = theano_step();
  CHECK(last_theano_user(step, "first") == "bend.backward");
  const Storage* mask = theano_storage(step, "drop.mask");
  REQUIRE(mask != nullptr);
  CHECK(mask->bytes.at(1) == 16 * 36 * 4);
}

TEST_CASE("Keras's SGD has moments, and each update follows its gradient") {
  const StepGraph step = theano_step();
  const Storage* moment = theano_storage(step, "second.weight.moment");
  REQUIRE(moment != nullptr);
  CHECK(moment->storage_class == StorageClass::optimizer_state);
  CHECK(moment->before_first_step);
  CHECK(theano_place(step, "update.second.weight") < theano_place(step, "first.backward.filter"));
}

TEST_CASE("an inference has the copies of the filters alone") {
  const StepGraph step = theano_step({}, Mode::inference);
  CHECK(theano_storage(step, "second.weight.contiguous") != nullptr);
  CHECK(theano_storage(step, "second.weight.moment") == nullptr);
}

TEST_CASE("without allow_gc every result lives to the end") {
  const StepGraph step = theano_step({.keeps_intermediates = true});
  for (const Storage& storage : step.storages) {
    if (storage.persistence != Persistence::transient) continue;
    CAPTURE(storage.name);
    CHECK(last_theano_user(step, storage.name) == step.nodes.back().name);
  }
}

}  // namespace stowage
