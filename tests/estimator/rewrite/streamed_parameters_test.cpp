// A step whose blocks' parameters are on the GPU while their block runs alone.
#include "estimator/rewrite/streamed_parameters.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "estimator/adapt/adapt.hpp"
#include "estimator/memory/step_memory.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

constexpr const char* tower = R"(model: tower
inputs: {x: {shape: [batch, 32]}, t: {shape: [batch], dtype: int64}}
blocks:
  block:
    layers:
      - linear: {name: up, features: 64}
      - relu: {name: act}
      - linear: {name: down, features: 32}
layers:
  - linear: {name: first, features: 32}
  - block: {name: h, repeat: 4}
  - linear: {name: head, features: 10}
loss: {cross_entropy: {from: [head, t]}}
)";

StepGraph inference_step() {
  return *testing::lowered(testing::described(tower),
                           {.kernels = KernelSet::pytorch, .mode = Mode::inference});
}

/// With adapters beside one layer of each block; all else is frozen.
StepGraph adapted_step() {
  auto model = load_adapted(std::make_shared<const SourceText>(SourceText{"tower.yaml", tower}),
                            {.fine_tuning = {.lora = "r=2,targets=up"}});
  if (!model) FAIL(render(model.error()));
  return *testing::lowered(*model, {.kernels = KernelSet::pytorch});
}

/// The frozen parameters of blocks "h.0", "h.1", ... and their forward kernels.
StreamedBlock block_named(const StepGraph& step, const std::string& module) {
  StreamedBlock block{.module = module, .first = {}, .last = {}, .parameters = {}};
  for (std::size_t n = 0; n < step.nodes.size(); ++n) {
    const KernelNode& node = step.nodes[n];
    if (node.phase != Phase::forward || !step.layer(node.op).starts_with(module + ".")) continue;
    if (!block.first.valid()) block.first = NodeId::of(n);
    block.last = NodeId::of(n);
  }
  for (std::size_t s = 0; s < step.storages.size(); ++s) {
    const Storage& storage = step.storages[s];
    const bool is_base = storage.name.find("lora") == std::string::npos;
    if (storage.storage_class != StorageClass::parameter || !is_base) continue;
    if (storage.name.starts_with(module + ".")) block.parameters.push_back(StorageId::of(s));
  }
  return block;
}

StreamedStep streamed(const StepGraph& step, const std::vector<StreamedBlock>& blocks) {
  auto result = with_streamed_parameters(step, blocks);
  if (!result) FAIL(render(result.error()));
  return *std::move(result);
}

std::string refusal(const StepGraph& step, const std::vector<StreamedBlock>& blocks) {
  const auto result = with_streamed_parameters(step, blocks);
  REQUIRE_FALSE(result.has_value());
  return result.error().front().message;
}

std::vector<std::string> copies_of(const StepGraph& step) {
  std::vector<std::string> copies;
  for (std::size_t n = 0; n < step.nodes.size(); ++n) {
    if (kernel_name(step.nodes[n]) != "fetch") continue;
    copies.push_back(step.nodes[n].name + " before " + step.nodes[n + 1].name);
  }
  return copies;
}

Bytes peak_of(const StepGraph& step) {
  const auto sized = size_storages(std::make_shared<const StepGraph>(step), 1);
  REQUIRE(sized.has_value());
  const auto live = live_bytes(*sized, {.granularity = Bytes(streamed_alignment)},
                               storage_touches(*sized->graph));
  return *std::ranges::max_element(live);
}

// up: 32 * 64 * 4 and 64 * 4 bytes, down: 64 * 32 * 4 and 32 * 4, each to a multiple of 512.
constexpr std::int64_t piece_bytes = 8192 + 512 + 8192 + 512;

}  // namespace

TEST_CASE("a block's copy begins when the block before is about to run") {
  const StepGraph step = inference_step();
  std::vector<StreamedBlock> blocks;
  for (const char* name : {"h.0", "h.1", "h.3"}) blocks.push_back(block_named(step, name));
  const StreamedStep result = streamed(step, blocks);
  CHECK(copies_of(result.step) == std::vector<std::string>{"h.0.from_host before h.1.from_host",
                                                           "h.1.from_host before h.0.up.forward",
                                                           "h.3.from_host before h.1.up.forward"});
  for (const StreamedPiece& piece : result.pieces) {
    CHECK(piece.bytes == piece_bytes);
    CHECK(piece.uploads == 1);
  }
  REQUIRE(result.step.host_buffers.size() == 1);
  CHECK(result.step.host_buffers.front() ==
        HostBuffer{"streamed parameters", 3 * piece_bytes, true});
}

TEST_CASE("kernels read a parameter at its place in the piece, and its own storage is gone") {
  const StepGraph step = inference_step();
  const StreamedStep result = streamed(step, {block_named(step, "h.2")});
  int seen = 0;
  for (const KernelNode& node : result.step.nodes) {
    for (const TensorView& view : node.reads) {
      const Storage& storage = result.step.storage(view.storage);
      CHECK_FALSE(
          (storage.storage_class == StorageClass::parameter && storage.name.starts_with("h.2.")));
      if (storage.name != "h.2.streamed") continue;
      CHECK(storage.persistence == Persistence::transient);
      const bool is_down = node.name.starts_with("h.2.down");
      const bool is_weight = view.shape.size() == 2;
      CHECK(view.offset == Affine((is_down ? 2176 : 0) + (is_weight ? 0 : 2048)));
      ++seen;
    }
  }
  CHECK(seen == 4);
}

TEST_CASE("parameters of two blocks are there at a time") {
  const StepGraph step = inference_step();
  std::vector<StreamedBlock> blocks;
  for (const char* name : {"h.0", "h.1", "h.2", "h.3"}) blocks.push_back(block_named(step, name));
  const StreamedStep result = streamed(step, blocks);
  CHECK(peak_of(step) - peak_of(result.step) == Bytes(2 * piece_bytes));
}

TEST_CASE("backward brings frozen parameters once more, in its own order") {
  const StepGraph step = adapted_step();
  std::vector<StreamedBlock> blocks;
  for (const char* name : {"h.0", "h.1", "h.3"}) blocks.push_back(block_named(step, name));
  const StreamedStep result = streamed(step, blocks);
  std::vector<std::string> copies;
  for (const KernelNode& node : result.step.nodes) {
    if (kernel_name(node) == "fetch") copies.push_back(node.name);
  }
  CHECK(copies == std::vector<std::string>{"h.0.from_host", "h.1.from_host", "h.3.from_host",
                                           "h.3.from_host~2", "h.1.from_host~2",
                                           "h.0.from_host~2"});
  for (const StreamedPiece& piece : result.pieces) CHECK(piece.uploads == 2);
  for (const KernelNode& node : result.step.nodes) {
    for (const TensorView& view : node.reads) {
      const std::string& name = result.step.storage(view.storage).name;
      if (name.find(".streamed") == std::string::npos) continue;
      CHECK((node.phase == Phase::backward) == name.ends_with("~2"));
    }
  }
  for (const SavedTensor& saved : result.step.saved) {
    CHECK(result.step.storage(saved.storage).name.find("h.0.down.weight") == std::string::npos);
  }
  CHECK(result.step.micro_batch.end_storage.index() -
            result.step.micro_batch.first_storage.index() ==
        step.micro_batch.end_storage.index() - step.micro_batch.first_storage.index() + 6);
}

TEST_CASE("parameters that more than their block reads or writes are refused") {
  const StepGraph step = inference_step();
  const StreamedBlock first = block_named(step, "h.0"), second = block_named(step, "h.1");
  CHECK(refusal(step, {second, first}) == "the block 'h.0' does not run by itself");
  StreamedBlock mixed = first;
  mixed.parameters.push_back(second.parameters.front());
  CHECK(refusal(step, {mixed, second}) == "'h.1.up.weight' is in two blocks");
  CHECK(refusal(step, {mixed}) ==
        "'h.1.up.forward' reads 'h.1.up.weight' outside of its block 'h.0'");
  const StepGraph trained =
      *testing::lowered(testing::described(tower), {.kernels = KernelSet::pytorch});
  CHECK(refusal(trained, {block_named(trained, "h.0")}).find(" 'h.0.up.weight'") !=
        std::string::npos);
}

}  // namespace stowage
