// FSDP's groups and shards, and what it refuses.
#include "estimator/rewrite/fully_sharded.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "estimator/check/check.hpp"
#include "estimator/document/step_document.hpp"
#include "estimator/memory/step_memory.hpp"
#include "estimator/rewrite/shard_groups.hpp"
#include "estimator/workspace/rule_workspace_source.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

const std::string two_blocks = R"(
model: two-blocks
inputs: {x: {shape: [batch, 10]}, target: {shape: [batch], dtype: int64}}
blocks:
  block:
    layers:
      - linear: {name: fc, features: 7}
      - relu: {name: act}
layers:
  - linear: {name: in, from: x, features: 7}
  - block: {name: blocks, repeat: 2}
  - linear: {name: out, features: 3}
loss:
  cross_entropy: {from: [out, target]}
)";

LoweringSettings sharded(int gpus, FullyShard fsdp = {}) {
  fsdp.on = true;
  return {.kernels = KernelSet::pytorch,
          .optimizer = {.name = "adamw"},
          .parallel = {.gpus = gpus, .fsdp = fsdp}};
}

const Storage& storage_named(const StepGraph& graph, std::string_view name) {
  const auto found = std::ranges::find(graph.storages, name, &Storage::name);
  REQUIRE(found != graph.storages.end());
  return *found;
}

std::string fsdp_refusal(const ModelGraph& model, const LoweringSettings& settings) {
  const auto step = lower_step(model, settings);
  return step ? "" : render(step.error());
}

}  // namespace

TEST_CASE("each repeated block is a group, and the root has what is left") {
  const ModelGraph model = testing::described(two_blocks);
  const auto made = shard_groups(model, {.gpus = 2, .fsdp = {.on = true}});
  REQUIRE(made.has_value());
  REQUIRE(made->groups.size() == 3);
  CHECK(made->groups[0].name == "root");
  CHECK(made->groups[0].parameters.size() == 4);
  CHECK(made->groups[1].name == "blocks.0");
  CHECK(made->groups[2].name == "blocks.1");
  CHECK(made->groups[2].parameters.size() == 2);
  const auto one = shard_groups(model, {.gpus = 2, .fsdp = {.on = true, .by_block = false}});
  REQUIRE(one.has_value());
  CHECK(one->groups.size() == 1);
  CHECK(one->groups[0].parameters.size() == 8);
}

TEST_CASE("a shard is the first of equal parts along the first axis, the last ones padded") {
  const auto graph = testing::lowered(testing::described(two_blocks), sharded(4));
  // 7 rows in 4 parts: 2 each, of 8 with the padding; 3 in 4: 1 each.
  CHECK(storage_named(*graph, "blocks.0.fc.weight").bytes == Affine(std::int64_t{2} * 7 * 4));
  CHECK(storage_named(*graph, "blocks.0.fc.weight.unsharded").bytes ==
        Affine(std::int64_t{8} * 7 * 4));
  CHECK(storage_named(*graph, "out.bias").bytes == Affine(4));
  CHECK(storage_named(*graph, "blocks.0.all_gather").bytes == Affine(std::int64_t{8 * 7 + 8} * 4));
  CHECK(storage_named(*graph, "blocks.0.reduce_scatter").bytes ==
        Affine(std::int64_t{2 * 7 + 2} * 4));
  CHECK(storage_named(*graph, "blocks.0.fc.weight.exp_avg").bytes ==
        Affine(std::int64_t{2} * 7 * 4));
}

TEST_CASE("gathers and reductions allocate on streams of their own") {
  const auto graph = testing::lowered(testing::described(two_blocks), sharded(2));
  for (const KernelNode& node : graph->nodes) {
    if (node.name.find("all_gather") != std::string::npos) {
      CHECK(node.attributes.integer("stream") == gather_stream);
    } else if (node.name.find("reduce_scatter") != std::string::npos) {
      CHECK(node.attributes.integer("stream") == reduce_stream);
    } else {
      CHECK_FALSE(node.attributes.has("stream"));
    }
  }
}

TEST_CASE("a sharded step goes through its file, and a second writing is the same") {
  FullyShard fsdp{.reshards_among = 2, .forward_prefetch = 1, .reduce_type = DataType::bfloat16};
  LoweringSettings settings = sharded(4, fsdp);
  const ModelGraph model = testing::described(two_blocks);
  StepDocument document{.written_by = "test", .graph = testing::lowered(model, settings)};
  document.parameters = model.parameters;
  const std::string text = write_step(document);
  const auto read = read_step(std::make_shared<const SourceText>(SourceText{"step.json", text}));
  REQUIRE(read.has_value());
  CHECK(read->graph->settings.parallel == settings.parallel);
  CHECK(write_step(*read) == text);

  settings.parallel.fsdp.reshards_among = 0;
  settings.parallel.offload = Offload::all;
  settings.parallel.pinned = false;
  document.graph = testing::lowered(model, settings);
  const auto offloaded =
      read_step(std::make_shared<const SourceText>(SourceText{"step.json", write_step(document)}));
  if (!offloaded) FAIL(render(offloaded.error()));
  CHECK(offloaded->graph->host_buffers == document.graph->host_buffers);
  CHECK(offloaded->graph->settings.parallel == settings.parallel);
}

TEST_CASE("offloaded, the GPU keeps no shard, and pinned ones take powers of two") {
  LoweringSettings settings = sharded(2);
  settings.parallel.offload = Offload::all;
  const auto graph = testing::lowered(testing::described(two_blocks), settings);
  CHECK(storage_named(*graph, "in.weight").bytes == Affine(0));
  CHECK(std::ranges::none_of(graph->nodes,
                             [](const KernelNode& node) { return node.phase == Phase::update; }));
  REQUIRE(graph->host_buffers.size() == 3);
  // in [4, 10] and [4], blocks [4, 7] and [4] twice, out [2, 7] and [2], in bytes as powers of two.
  const std::int64_t pinned = 256 + 16 + 2 * (128 + 16) + 64 + 8;
  CHECK(graph->host_buffers[0] == HostBuffer{"sharded parameters", pinned, true});
  CHECK(graph->host_buffers[1] == HostBuffer{"sharded gradients", pinned, true});
  const std::int64_t elements = 40 + 4 + 2 * (28 + 4) + 14 + 2;
  CHECK(graph->host_buffers[2] ==
        HostBuffer{"optimizer state", std::int64_t{2} * 4 * elements, false});
}

TEST_CASE("with MixedPrecisionPolicy the result is cast before the loss reads it") {
  const ModelGraph model = testing::shipped("resnet18", {.precision = Precision::mixed_bf16});
  LoweringSettings settings = sharded(2, {.output_type = DataType::float32});
  const auto graph = testing::lowered(model, settings);
  CHECK(graph->settings.parallel.fsdp.output_type == DataType::float32);
  CHECK(graph->output.type == DataType::float32);
  CHECK(graph->losses.front().type == DataType::float32);
  CHECK(fsdp_refusal(testing::shipped("gpt2", {.precision = Precision::mixed_bf16}), settings) ==
        "error: 'gpt2' computes its loss itself, and FSDP casts its result after that\n"
        "  leave out the output's format\n");
}

TEST_CASE("check runs PyTorch's allocator over a sharded step") {
  const auto source = rule_workspace_source(8.0);
  const auto step = size_step(testing::lowered(testing::shipped("gpt2"), sharded(4)), 1, *source);
  REQUIRE(step.has_value());
  const CheckReport report = check(*step, generic_card(24_GiB, 8.0), {});
  CHECK(report.fits);
  CHECK(report.run.process().steady_reached);
  CHECK(report.reserved_bytes() >= report.tensor_bytes());
}

TEST_CASE("a group that padding makes too large is refused") {
  const ModelGraph wide = testing::described(R"(
model: wide
inputs: {x: {shape: [batch, 1000000000000]}, target: {shape: [batch], dtype: int64}}
layers:
  - linear: {name: fc, from: x, features: 2}
loss:
  cross_entropy: {from: [fc, target]}
)");
  CHECK(fsdp_refusal(wide, sharded(2)).empty());
  CHECK(
      fsdp_refusal(wide, sharded(most_gpus))
          .starts_with("error: gathered from 65536 GPUs with its padding, 'root' is larger than"));
}

TEST_CASE("what fully_shard refuses is refused with its reason") {
  const ModelGraph model = testing::described(two_blocks);
  CHECK(fsdp_refusal(model, sharded(4, {.reshards_among = 3})) ==
        "error: FSDP reshards among a divisor of the GPUs above 1: 4 GPUs have no groups of 3\n");
  LoweringSettings settings = sharded(4);
  settings.step.zero_grad = ZeroGrad::to_zero;
  CHECK(fsdp_refusal(model, settings) ==
        "error: FSDP is sized with gradients that are let go after the update\n"
        "  leave zero_grad at to_none\n");
  settings = sharded(4);
  settings.optimizer = {.name = "adam8bit"};
  CHECK(fsdp_refusal(model, settings) ==
        "error: FSDP is not sized with adam8bit, which works on whole parameters "
        "(bitsandbytes.optim.Adam8bit)\n"
        "  take one of torch.optim's that work element by element: adamw, sgd\n");
  settings = sharded(4);
  settings.kernels = KernelSet::stowage;
  CHECK(fsdp_refusal(model, settings) ==
        "error: FSDP is PyTorch's, and has no place among other kernels\n");
  settings = sharded(4);
  settings.step.layout = TensorLayout::channels_last;
  CHECK(fsdp_refusal(testing::shipped("resnet18"), settings) ==
        "error: FSDP shards no parameters that are laid out as nhwc\n"
        "  leave the layout at contiguous\n");
}

}  // namespace stowage
