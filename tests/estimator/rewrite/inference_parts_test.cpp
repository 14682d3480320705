// An inference whose batch runs in equal parts, one after the other.
#include "estimator/rewrite/inference_parts.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "estimator/memory/step_memory.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

constexpr const char* small_network = R"(model: net
inputs: {x: {shape: [batch, 4, 8, 8]}, t: {shape: [batch], dtype: int64}}
layers:
  - conv2d: {name: first, from: x, channels: 64, kernel: 3, padding: 1}
  - relu: {name: act}
  - flatten: {name: flat}
  - linear: {name: head, features: 10}
loss: {cross_entropy: {from: [head, t]}}
)";

StepGraph lowered_inference(const std::string& text) {
  return *testing::lowered(testing::described(text),
                           {.kernels = KernelSet::pytorch, .mode = Mode::inference});
}

StepGraph in_parts(const StepGraph& step, std::int64_t parts) {
  auto result = with_inference_parts(step, parts);
  if (!result) FAIL(render(result.error()));
  return *std::move(result);
}

std::vector<std::string> node_names(const StepGraph& step) {
  std::vector<std::string> names;
  for (const KernelNode& node : step.nodes) names.push_back(node.name);
  return names;
}

const Storage& named_storage(const StepGraph& step, std::string_view name) {
  const auto found = std::ranges::find(step.storages, name, &Storage::name);
  REQUIRE(found != step.storages.end());
  return *found;
}

Bytes most_live(const StepGraph& step, std::int64_t batch) {
  const auto sized = size_storages(std::make_shared<const StepGraph>(step), batch);
  REQUIRE(sized.has_value());
  const auto live = live_bytes(*sized, {}, storage_touches(*sized->graph));
  return *std::ranges::max_element(live);
}

}  // namespace

TEST_CASE("each part runs all kernels, and its output is copied to the whole") {
  const StepGraph step = lowered_inference(small_network);
  const StepGraph parts = in_parts(step, 3);
  const std::vector<std::string> once = node_names(step);
  std::vector<std::string> expected;
  for (const char* ending : {"", "~2", "~3"}) {
    for (const std::string& name : once) expected.push_back(name + ending);
    expected.push_back(std::string("head.whole.copy") + ending);
  }
  CHECK(node_names(parts) == expected);
  CHECK(parts.output.shape == Shape{Affine(0, 3), 10});
  CHECK(parts.storage(parts.output.storage).name == "head.whole");
  CHECK(named_storage(parts, "head.whole").bytes == Affine(0, 3LL * 40));
  CHECK(parts.script_holds.of(parts.output.storage).replaced_after ==
        NodeId::of(parts.nodes.size() - 1));
  CHECK(parts.convolutions.size() == 3 * step.convolutions.size());
  for (std::size_t n = 0; n < parts.nodes.size(); ++n) {
    if (parts.nodes[n].convolution < 0) continue;
    CHECK(parts.nodes[n].name.starts_with("first.forward"));
  }
}

TEST_CASE("parts read their share of the inputs, and the same parameters") {
  const StepGraph parts = in_parts(lowered_inference(small_network), 2);
  CHECK(named_storage(parts, "x").bytes == Affine(0, 2LL * 4 * 8 * 8 * 4));
  std::vector<Affine> offsets;
  for (const KernelNode& node : parts.nodes) {
    for (const TensorView& view : node.reads) {
      if (parts.storage(view.storage).name == "x") offsets.push_back(view.offset);
    }
  }
  CHECK(offsets == std::vector<Affine>{0, Affine(0, 4LL * 8 * 8)});
  CHECK(std::ranges::count(parts.storages, "first.weight", &Storage::name) == 1);
  std::vector<Affine> places;
  for (const KernelNode& node : parts.nodes) {
    if (node.kernel == Kernel::copy) places.push_back(node.writes.front().offset);
  }
  CHECK(places == std::vector<Affine>{0, Affine(0, 10)});
}

TEST_CASE("half a batch at a time takes half of the activations") {
  const StepGraph step = lowered_inference(small_network);
  const Bytes whole = most_live(step, 64), half = most_live(step, 32);
  const Bytes parts = most_live(in_parts(step, 2), 32);
  CHECK(parts < whole);
  // The other half of the inputs, images and labels, and of the last step's output, which the
  // script still has, and the whole output.
  CHECK((parts - half).count() <= 32 * (4 * 8 * 8 * 4 + 8 + 40) + 64 * 40);
  CHECK(parts > half);
}

TEST_CASE("what cannot be cut along the batch is refused") {
  const auto refused = [](const StepGraph& step) {
    const auto result = with_inference_parts(step, 2);
    REQUIRE_FALSE(result.has_value());
    return result.error().front().message;
  };
  CHECK(refused(*testing::lowered(testing::described(small_network),
                                  {.kernels = KernelSet::pytorch})) ==
        "a training step is no inference");
  StepGraph step = lowered_inference(small_network);
  step.output.shape = {10, batch_symbol};
  CHECK(refused(step) == "the first axis of the model's output is not the batch");
  step = lowered_inference(small_network);
  step.inputs.front().shape = {4, batch_symbol, 8, 8};
  CHECK(refused(step) == "the first axis of the input 'x' is not the batch");
  step = lowered_inference(small_network);
  step.output = step.inputs.front();
  CHECK(refused(step) == "the model returns what it was given");
  step = lowered_inference(small_network);
  for (std::size_t s = 0; s < step.storages.size(); ++s) {
    if (step.storages[s].name != "act" && step.storages[s].name != "first") continue;
    step.storages[s].bytes = step.storages[s].bytes + Affine(4);
    step.script_holds.set(StorageId::of(s), {.held_to_end = true});
  }
  CHECK(refused(step) == "'first', which the script keeps, does not grow with the batch alone");
  step = lowered_inference(small_network);
  step.nodes.front().writes.push_back(step.nodes.front().reads[1]);
  CHECK(refused(step).ends_with(" writes to 'first.weight', which every part would find changed"));
}

}  // namespace stowage
