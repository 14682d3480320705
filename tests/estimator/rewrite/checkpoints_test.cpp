// A step that keeps all of its forward pass, rewritten to run regions of it again.
#include "estimator/rewrite/checkpoints.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "estimator/document/make_document.hpp"
#include "estimator/rewrite/update_on_host.hpp"
#include "estimator/step/lower.hpp"
#include "estimator/step/operator_lowering.hpp"
#include "estimator/step/saved_storages.hpp"
#include "tests/support/described_model.hpp"

namespace stowage {

namespace {

constexpr std::string_view network = R"(
model: net
inputs: {x: {shape: [batch, 4, 8, 8]}, t: {shape: [batch], dtype: int64}}
layers:
  - conv2d: {name: first, from: x, channels: 4, kernel: 3, padding: 1}
  - batch_norm: {name: norm}
  - relu: {name: act}
  - dropout: {name: drop}
  - conv2d: {name: second, channels: 4, kernel: 3, padding: 1}
  - flatten: {name: flat}
  - linear: {name: head, features: 10}
loss: {cross_entropy: {from: [head, t]}}
)";

StepGraph kept_whole(KernelSet kernels, Precision precision = Precision::fp32,
                     Mode mode = Mode::train) {
  const auto source =
      std::make_shared<const SourceText>(SourceText{"net.yaml", std::string(network)});
  const auto model = load_model(source, {.precision = precision});
  if (!model) FAIL(render(model.error()));
  auto step = lower(*model, {.kernels = kernels, .mode = mode});
  if (!step) FAIL(render(step.error()));
  return *std::move(step);
}

/// The operators with these layers' names.
CheckpointRegion region_of(const StepGraph& step, const std::vector<std::string>& layers) {
  CheckpointRegion region;
  for (std::size_t i = 0; i < step.origins.size(); ++i) {
    if (std::find(layers.begin(), layers.end(), step.origins[i].layer) != layers.end()) {
      region.operators.push_back(OperatorId::of(i));
    }
  }
  REQUIRE(region.operators.size() == layers.size());
  return region;
}

StepGraph checkpointed(const StepGraph& step, const std::vector<std::string>& layers) {
  auto result = with_checkpoints(step, {region_of(step, layers)});
  if (!result) FAIL(render(result.error()));
  return *std::move(result);
}

const KernelNode& checkpointed_call(const StepGraph& step, const std::string& name) {
  const auto found = std::find_if(step.nodes.begin(), step.nodes.end(),
                                  [&](const KernelNode& node) { return node.name == name; });
  REQUIRE_MESSAGE(found != step.nodes.end(), name);
  return *found;
}

std::vector<std::string> again(const StepGraph& step) {
  std::vector<std::string> names;
  for (const KernelNode& node : step.nodes) {
    if (node.name.find(".recomputed") != std::string::npos) names.push_back(node.name);
  }
  return names;
}

bool reads(const StepGraph& step, const KernelNode& node, const std::string& storage) {
  return std::any_of(node.reads.begin(), node.reads.end(), [&](const TensorView& view) {
    return step.storage(view.storage).name == storage;
  });
}

std::string refusal_message(const Result<StepGraph>& result) {
  return result ? "no error" : result.error().front().message;
}

const std::vector<std::string> block{"first", "norm", "act", "drop"};

}  // namespace

TEST_CASE("a region's kernels run again before its first backward, on storages of their own") {
  for (const KernelSet kernels : all_kernel_sets) {
    CAPTURE(to_string(kernels));
    const StepGraph whole = kept_whole(kernels);
    const StepGraph step = checkpointed(whole, block);
    CHECK(again(step) ==
          std::vector<std::string>{"first.forward.recomputed", "norm.forward.recomputed",
                                   "act.forward.recomputed", "drop.forward.recomputed"});
    const auto place = [&](const std::string& name) {
      return &checkpointed_call(step, name) - step.nodes.data();
    };
    CHECK(place("second.backward.data") < place("first.forward.recomputed"));
    CHECK(place("drop.forward.recomputed") < place("drop.backward"));
    const KernelNode& forward = checkpointed_call(step, "first.forward");
    const KernelNode& second = checkpointed_call(step, "first.forward.recomputed");
    CHECK(second.phase == Phase::backward);
    CHECK(second.op == forward.op);
    CHECK(second.kernel == forward.kernel);
    CHECK(second.reads == forward.reads);
    CHECK(step.storage(second.writes.front().storage).name == "first.recomputed");
    CHECK(second.convolution != forward.convolution);
    CHECK(step.convolutions[static_cast<std::size_t>(second.convolution)] ==
          step.convolutions[static_cast<std::size_t>(forward.convolution)]);
    CHECK(reads(step, checkpointed_call(step, "norm.backward"), "first.recomputed"));
    CHECK_FALSE(reads(step, checkpointed_call(step, "norm.backward"), "first"));
    // What a layer outside saved is read as ever.
    CHECK(reads(step, checkpointed_call(step, "second.backward.filter"), "drop"));
  }
}

TEST_CASE("the second run draws the same random numbers and leaves running statistics alone") {
  for (const KernelSet kernels : all_kernel_sets) {
    CAPTURE(to_string(kernels));
    const StepGraph step = checkpointed(kept_whole(kernels), block);
    CHECK(checkpointed_call(step, "norm.forward").attributes.real("momentum") > 0);
    CHECK(checkpointed_call(step, "norm.forward.recomputed").attributes.real("momentum") == 0);
    CHECK(checkpointed_call(step, "drop.forward.recomputed").attributes ==
          checkpointed_call(step, "drop.forward").attributes);
  }
}

TEST_CASE("less is live at the end of forward, and what enters lasts") {
  for (const KernelSet kernels : all_kernel_sets) {
    CAPTURE(to_string(kernels));
    const StepGraph whole = kept_whole(kernels);
    const StepGraph step = checkpointed(whole, block);
    const auto kept = [](const StepGraph& graph) {
      std::int64_t bytes = 0;
      std::vector<StorageId> counted;
      for (const SavedTensor& saved : graph.saved) {
        const Storage& storage = graph.storage(saved.storage);
        const bool counts =
            storage.persistence == Persistence::transient &&
            std::find(counted.begin(), counted.end(), saved.storage) == counted.end();
        if (counts) bytes += storage.bytes.at(16);
        counted.push_back(saved.storage);
      }
      return bytes;
    };
    CHECK(kept(step) < kept(whole));
    const auto region_input =
        std::find_if(step.saved.begin(), step.saved.end(),
                     [](const SavedTensor& saved) { return saved.role == "region input"; });
    REQUIRE(region_input != step.saved.end());
    CHECK(step.storage(region_input->storage).name == "x");
  }
}

/// The step with a checkpoint, of which the script keeps 'first', until that node has run.
StepGraph with_script_keeping_first(StepGraph whole, NodeId until) {
  const auto saved = std::ranges::find_if(whole.saved, [&](const SavedTensor& one) {
    return whole.storage(one.storage).name == "first";
  });
  REQUIRE(saved != whole.saved.end());
  saved->call =
      SavedCall{.key = "norm#0", .view = {.storage = saved->storage}, .held_until = until};
  return checkpointed(whole, block);
}

TEST_CASE("what the script keeps of a region's saved tensors lives as long") {
  const StepGraph whole = kept_whole(KernelSet::pytorch);
  std::size_t end = 0;
  while (whole.nodes[end].phase != Phase::update) ++end;
  const StepGraph step = with_script_keeping_first(whole, NodeId::of(end - 1));
  const auto last = std::ranges::find_if(
      step.nodes, [](const KernelNode& node) { return node.phase == Phase::update; });
  const std::vector<StorageId>& holds = std::prev(last)->holds;
  CHECK(std::ranges::count_if(holds,
                              [&](StorageId id) { return step.storage(id).name == "first"; }) == 1);
  CHECK(step.script_holds == whole.script_holds);
}

TEST_CASE("what the script keeps to the step's end is kept where the updates leave the GPU") {
  const StepGraph whole = kept_whole(KernelSet::pytorch);
  const StepGraph step = with_script_keeping_first(whole, NodeId::of(whole.nodes.size() - 1));
  const auto is_kept = [](const StepGraph& graph) {
    const auto first = std::ranges::find(graph.storages, "first", &Storage::name);
    REQUIRE(first != graph.storages.end());
    const auto id = StorageId::of(static_cast<std::size_t>(first - graph.storages.begin()));
    return graph.script_holds.of(id).held_to_end;
  };
  CHECK(is_kept(step));
  const auto moved = with_update_on_host(step);
  REQUIRE(moved);
  CHECK(is_kept(*moved));
}

TEST_CASE("autocast converts a region's weights again, and keeps them while it runs") {
  const StepGraph step =
      checkpointed(kept_whole(KernelSet::pytorch, Precision::amp_bf16), {"second", "flat", "head"});
  const std::vector<std::string> names = again(step);
  CHECK(std::count(names.begin(), names.end(), "second.weight.cast.recomputed") == 1);
  CHECK(std::count(names.begin(), names.end(), "second.forward.recomputed") == 1);
  // The last layer saves its input and weight alone, and is not multiplied again.
  CHECK(std::count(names.begin(), names.end(), "head.weight.cast.recomputed") == 1);
  CHECK(std::count(names.begin(), names.end(), "head.forward.recomputed") == 0);
  const KernelNode& last = checkpointed_call(step, names.back());
  const auto holds = [&](const std::string& name) {
    return std::any_of(last.holds.begin(), last.holds.end(),
                       [&](StorageId id) { return step.storage(id).name == name; });
  };
  CHECK(holds("second.weight.cast.recomputed"));
  CHECK(holds("head.weight.cast.recomputed"));
}

TEST_CASE("a checkpointed step is a step like any other: written, read back, repeated") {
  for (const KernelSet kernels : all_kernel_sets) {
    CAPTURE(to_string(kernels));
    const StepGraph whole = kept_whole(kernels);
    StepDocument document;
    document.graph = std::make_shared<const StepGraph>(checkpointed(whole, block));
    document.runtime = kernels == KernelSet::pytorch ? Runtime::pytorch : Runtime::stowage;
    document.parameters = testing::described(std::string(network)).parameters;
    const auto read = read_step(
        std::make_shared<const SourceText>(SourceText{"step.json", write_step(document)}));
    REQUIRE_MESSAGE(read, render(read.error()));
    CHECK((canonical_text(*read->graph) == canonical_text(*document.graph)));
    // Who has the step alone can checkpoint it too.
    document.graph = std::make_shared<const StepGraph>(whole);
    const auto read_whole = read_step(
        std::make_shared<const SourceText>(SourceText{"step.json", write_step(document)}));
    REQUIRE(read_whole);
    CHECK((canonical_text(checkpointed(*read_whole->graph, block)) ==
           canonical_text(checkpointed(whole, block))));
  }
}

TEST_CASE("what cannot be checkpointed says why") {
  StepGraph step = kept_whole(KernelSet::stowage);
  const CheckpointRegion region = region_of(step, block);
  CHECK(refusal_message(with_checkpoints(step, {region, region})) ==
        "'first' is in two checkpointed regions");
  CHECK(refusal_message(with_checkpoints(step, {{.operators = {OperatorId::of(99)}}})) ==
        "a checkpointed operator is none of 'net'");
  step.settings.micro_batches = 2;
  CHECK(refusal_message(with_checkpoints(step, {region})) ==
        "the step of 'net' has 2 micro-batches; checkpoints come before them");
}

TEST_CASE("where nothing is saved, nothing runs again") {
  const StepGraph inference = kept_whole(KernelSet::pytorch, Precision::fp32, Mode::inference);
  CHECK(checkpointed(inference, block) == inference);
  const StepGraph whole = kept_whole(KernelSet::pytorch);
  CHECK(checkpointed(whole, {"flat"}) == whole);
}

TEST_CASE("a region within a region runs a third time, on what the outer one's second run makes") {
  for (const KernelSet kernels : all_kernel_sets) {
    CAPTURE(to_string(kernels));
    const StepGraph inner = checkpointed(kept_whole(kernels), {"norm", "act", "drop"});
    const StepGraph step = checkpointed(inner, block);
    // The outer one's second run ends where the inner one begins: it has the inner one's input.
    CHECK(again(step) ==
          std::vector<std::string>{"first.forward.nested.recomputed", "norm.forward.recomputed",
                                   "act.forward.recomputed", "drop.forward.recomputed"});
    const KernelNode& norm = checkpointed_call(step, "norm.forward.recomputed");
    CHECK(reads(step, norm, "first.nested.recomputed"));
    CHECK(reads(step, checkpointed_call(step, "norm.backward"), "first.nested.recomputed"));
    CHECK(std::ranges::none_of(step.saved, [&](const SavedTensor& saved) {
      return step.storage(saved.storage).name == "first";
    }));
  }
}

TEST_CASE("what hooks get of a region's inputs is kept by autograd alone") {
  const StepGraph whole = kept_whole(KernelSet::pytorch);
  CheckpointRegion region = region_of(whole, {"second"});
  const auto drop = std::ranges::find(whole.storages, "drop", &Storage::name);
  REQUIRE(drop != whole.storages.end());
  const auto id = StorageId::of(static_cast<std::size_t>(drop - whole.storages.begin()));
  const auto rewritten = [&] {
    auto step = with_checkpoints(whole, {region});
    REQUIRE(step.has_value());
    return *std::move(step);
  };
  CHECK_FALSE(kept_by_autograd(rewritten())[id.index()]);
  region.inputs = {{.key = "second#input0",
                    .view = contiguous_view(id, {batch_symbol, 4, 8, 8}, DataType::float32),
                    .packed_after = NodeId{4},
                    .unpacked_before = {},
                    .held_until = NodeId{5}}};
  const StepGraph step = rewritten();
  CHECK(kept_by_autograd(step)[id.index()]);
  const auto saved = std::ranges::find(step.saved, "region input", &SavedTensor::role);
  REQUIRE(saved != step.saved.end());
  REQUIRE(saved->call.has_value());
  CHECK(saved->call->key == "second#input0");
  CHECK(saved->call->packed_after == NodeId{4});
  CHECK(saved->call->held_until == NodeId{5});
  // The convolution saves its input alone, so that none of its kernels runs again.
  CHECK(step.node(saved->call->unpacked_before).name == "second.backward.data");
}

}  // namespace stowage
